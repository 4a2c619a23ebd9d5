//! Wrong command lines: one line that names the wrong word and the closest right one.

mod common;

use common::{assert_refused, poundlock};

#[test]
fn the_closest_right_word_is_suggested() {
    for (arguments, named, suggested) in [
        (&["lst"][..], "'lst'", "did you mean 'list'?"),
        (&["compar", "--", "true"], "'compar'", "did you mean 'compare'?"),
        (&["stat", "--jsno", "x", "--", "true"], "'--jsno'", "did you mean '--json'?"),
        (&["top", "-p", "1", "--sort", "waitrs"], "'waitrs'", "did you mean 'waiters'?"),
        (&["sim", "swep"], "'swep'", "did you mean 'sweep'?"),
    ] {
        assert_refused(&mut poundlock(arguments.iter().copied()), 125, &[named, suggested]);
    }
}
