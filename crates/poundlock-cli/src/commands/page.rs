//! The frame of the HTML pages that commands write: self-contained, with the same style.

use crate::provenance::Provenance;
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = "
body { font: 15px/1.5 sans-serif; color: #222831; max-width: 1240px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; width: 100%; font-size: 13px } h2 { margin-top: 2em }
th { text-align: right; border-bottom: 2px solid #889; padding: 4px 8px } td { text-align: right; padding: 3px 8px;
border-bottom: 1px solid #e4e7eb; white-space: nowrap } th:first-child, td:first-child { text-align: left; white-space:
normal; word-break: break-word } iframe { width: 100%; border: 1px solid #e4e7eb } svg { max-width: 100%; height: auto }
details { margin: .3em 0 } .faint { color: #78808a } code { font-size: 12px }";

/// Makes the flame graph as wide as its frame: its script removes its own width for that.
const FLAME_STYLE: &str = "<style>body { margin: 0 } svg { display: block; width: 100% }</style>";

/// A page with this title and body.
pub fn page(title: &str, provenance: &Provenance, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                p.faint { (provenance.machine_line()) }
                (body)
            }
        }
    }
}

/// A flame graph in a frame of its own, for its script.
pub fn flame_graph(svg: &str) -> Markup {
    html! { iframe title="flame graph" height=(height_of(svg)) srcdoc={ (FLAME_STYLE) (svg) } {} }
}

/// The height of a picture, with room for a frame around it.
fn height_of(svg: &str) -> u32 {
    let value = svg.split("height=\"").nth(1).and_then(|rest| rest.split('"').next());
    value.and_then(|value| value.parse::<u32>().ok()).unwrap_or(600) + 20
}
