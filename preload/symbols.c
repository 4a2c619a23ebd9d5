/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Reads ELF files. Nothing of a file is believed: another one may have replaced it since it was
 * loaded.
 */
#define _GNU_SOURCE
#include "symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct file {
	const unsigned char *bytes;
	size_t size;
};

/* @count elements of @element bytes at @offset of @file; NULL if it does not contain them. */
static const void *part(const struct file *file, uint64_t offset, uint64_t count, uint64_t element,
			uint64_t alignment)
{
	if (offset > file->size || offset % alignment || count > (file->size - offset) / element)
		return NULL;
	return file->bytes + offset;
}

/* The section headers; NULL if @file is not of this machine's class, or has none. */
static const ElfW(Shdr) * sections(const struct file *file, size_t *count)
{
	const ElfW(Ehdr) *header = part(file, 0, 1, sizeof(*header), 1);

	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(ElfW(Shdr)))
		return NULL;
	*count = header->e_shnum;
	return part(file, header->e_shoff, *count, sizeof(ElfW(Shdr)), _Alignof(ElfW(Shdr)));
}

/* The table of all symbols, or else of those exported. */
static const ElfW(Shdr) * find_table(const ElfW(Shdr) * section, size_t count)
{
	const ElfW(Shdr) *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (section[i].sh_type == SHT_SYMTAB ||
		    (section[i].sh_type == SHT_DYNSYM && !found))
			found = &section[i];
	return found;
}

/* The names that @table refers to, which end with a zero. */
static const char *find_names(const struct file *file, const ElfW(Shdr) * section, size_t count,
			      const ElfW(Shdr) * table, size_t *size)
{
	const ElfW(Shdr) *names = table->sh_link < count ? &section[table->sh_link] : NULL;
	const char *text =
		names && names->sh_size ? part(file, names->sh_offset, names->sh_size, 1, 1) : NULL;

	*size = text ? names->sh_size : 0;
	return text && !text[*size - 1] ? text : NULL;
}

static bool overlap(uintptr_t from, uintptr_t to, uintptr_t start, uintptr_t bytes)
{
	return from < start + bytes && start < to;
}

/* Whether the program may change all bytes of @loaded from @from to before @to. */
static bool is_writable(const struct dl_phdr_info *loaded, uintptr_t from, uintptr_t to)
{
	bool writable = false;

	for (size_t i = 0; i < loaded->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &loaded->dlpi_phdr[i];
		uintptr_t start = loaded->dlpi_addr + part->p_vaddr;

		/* The loader has made it read-only. */
		if (part->p_type == PT_GNU_RELRO && overlap(from, to, start, part->p_memsz))
			return false;
		if (part->p_type == PT_LOAD && (part->p_flags & PF_W) && from >= start &&
		    from <= to && to - start <= part->p_memsz)
			writable = true;
	}
	return writable;
}

static void each_of(const struct file *file, const struct dl_phdr_info *loaded,
		    void (*with)(const struct symbol *symbol))
{
	const uintptr_t base = loaded->dlpi_addr;
	size_t sections_count = 0, names_size, count;
	const ElfW(Shdr) *section = sections(file, &sections_count), *table;
	const ElfW(Sym) * symbols;
	const char *names;

	table = section ? find_table(section, sections_count) : NULL;
	names = table ? find_names(file, section, sections_count, table, &names_size) : NULL;
	if (!names)
		return;
	count = table->sh_size / sizeof(*symbols);
	symbols = part(file, table->sh_offset, count, sizeof(*symbols), _Alignof(ElfW(Sym)));
	for (size_t i = 0; symbols && i < count; i++) {
		const ElfW(Sym) *symbol = &symbols[i];
		uintptr_t from = base + symbol->st_value, to = from + symbol->st_size;
		int type = ELF64_ST_TYPE(symbol->st_info);

		if ((type == STT_OBJECT || type == STT_FUNC) && symbol->st_shndx != SHN_UNDEF &&
		    symbol->st_size && symbol->st_name < names_size)
			with(&(struct symbol){.name = names + symbol->st_name,
					      .from = from,
					      .to = to,
					      .is_function = type == STT_FUNC,
					      .is_writable = is_writable(loaded, from, to)});
	}
}

/* Raw calls: open() is a cancellation point. */
static void read_file(const char *path, const struct dl_phdr_info *loaded,
		      void (*with)(const struct symbol *symbol))
{
	int opened = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct file file = {.bytes = MAP_FAILED};
	struct stat status;

	if (opened < 0)
		return;
	if (!fstat(opened, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
		file.size = (size_t)status.st_size;
		file.bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, opened, 0);
	}
	syscall(SYS_close, opened);
	if (file.bytes == MAP_FAILED)
		return;
	each_of(&file, loaded, with);
	munmap((void *)file.bytes, file.size);
}

static int each_loaded(struct dl_phdr_info *loaded, size_t size, void *with)
{
	const char *path = loaded->dlpi_name;

	(void)size;
	/* The program itself is without a name. */
	read_file(path && *path ? path : "/proc/self/exe", loaded,
		  *(void (**)(const struct symbol *))with);
	return 0;
}

void symbols_each(void (*with)(const struct symbol *symbol))
{
	dl_iterate_phdr(each_loaded, &with);
}
