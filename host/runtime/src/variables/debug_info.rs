//! Types of variables, from the DWARF that `nvcc -G` writes into the PTX as sections of data.

use std::collections::HashMap;

use gimli::{
    AttributeValue, DebugAbbrev, DebugInfo as Info, DebugStr, DebuggingInformationEntry,
    EndianSlice, EntriesTreeNode, LittleEndian, UnitHeader, UnitOffset, constants as dw,
};
use ptx::ast::{Item, Module};

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<'a, 'a, Slice<'a>>;

/// Types inside of types are followed to this depth.
const DEPTH: u32 = 32;
/// What stands for the first symbol where the data has the address of one.
const FIRST_SYMBOL: u64 = 1 << 32;

/// The debug information of a module; empty for one that is compiled without.
#[derive(Debug, Default)]
pub(super) struct DebugInfo {
    info: Vec<u8>,
    abbreviations: Vec<u8>,
    strings: Vec<u8>,
    /// The type of each variable by its mangled name: the unit by its number, and where the type stands in it.
    variables: HashMap<String, (usize, UnitOffset)>,
}

impl DebugInfo {
    pub(super) fn new(module: &Module) -> Self {
        let mut all = Self::default();
        let mut symbols = Symbols::default();
        for item in &module.items {
            if let Item::Section { name, span } = item {
                let into = match name.as_str() {
                    ".debug_info" => &mut all.info,
                    ".debug_abbrev" => &mut all.abbreviations,
                    ".debug_str" => &mut all.strings,
                    _ => continue,
                };
                bytes(module, module.slice(*span), &mut symbols, into);
            }
        }
        let mut variables = HashMap::new();
        for (number, unit) in all.units().enumerate() {
            // What cannot be read has no names.
            let _ = all.collect(&unit, |entry| {
                let Some(symbol) = symbol(entry).and_then(|n| symbols.names.get(n)) else {
                    return;
                };
                if let Some(ty) = reference(entry) {
                    variables.insert(symbol.clone(), (number, ty));
                }
            });
        }
        all.variables = variables;
        all
    }

    /// What stands behind a variable's name for the byte at an offset, if its type is known.
    pub(super) fn path(&self, symbol: &str, offset: u64) -> Option<String> {
        let &(number, ty) = self.variables.get(symbol)?;
        let unit = self.units().nth(number)?;
        let mut path = String::new();
        self.descend(&unit, ty, offset, &mut path, DEPTH)?;
        Some(path)
    }

    fn units(&self) -> impl Iterator<Item = UnitHeader<Slice<'_>>> {
        let mut units = Info::new(&self.info, LittleEndian).units();
        std::iter::from_fn(move || units.next().ok().flatten())
    }

    /// Calls with every variable of a unit.
    fn collect(
        &self,
        unit: &UnitHeader<Slice<'_>>,
        mut each: impl FnMut(&Entry<'_>),
    ) -> gimli::Result<()> {
        let abbreviations =
            unit.abbreviations(&DebugAbbrev::new(&self.abbreviations, LittleEndian))?;
        let mut entries = unit.entries(&abbreviations);
        while let Some((_, entry)) = entries.next_dfs()? {
            if entry.tag() == dw::DW_TAG_variable {
                each(entry);
            }
        }
        Ok(())
    }

    /// Adds to the path what stands for a byte of a type, down to a scalar.
    fn descend(
        &self,
        unit: &UnitHeader<Slice<'_>>,
        ty: UnitOffset,
        offset: u64,
        path: &mut String,
        depth: u32,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let abbreviations = unit
            .abbreviations(&DebugAbbrev::new(&self.abbreviations, LittleEndian))
            .ok()?;
        let mut tree = unit.entries_tree(&abbreviations, Some(ty)).ok()?;
        let root = tree.root().ok()?;
        let (tag, inner) = (root.entry().tag(), reference(root.entry()));
        match tag {
            dw::DW_TAG_array_type => {
                let size = self.size(unit, inner?, depth)?.max(1);
                path.push_str(&super::indices(&dimensions(root), offset / size));
                self.descend(unit, inner?, offset % size, path, depth)
            }
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                let mut members = root.children();
                while let Some(member) = members.next().ok()? {
                    let entry = member.entry();
                    let base = entry.tag() == dw::DW_TAG_inheritance;
                    let (Some(ty), true) =
                        (reference(entry), base || entry.tag() == dw::DW_TAG_member)
                    else {
                        continue;
                    };
                    let start = member_offset(entry);
                    let size = self.size(unit, ty, depth)?;
                    let Some(inside) = offset.checked_sub(start).filter(|at| *at < size) else {
                        continue;
                    };
                    let strings = DebugStr::new(&self.strings, LittleEndian);
                    let name = entry.attr(dw::DW_AT_name).ok().flatten();
                    let name = name.and_then(|of| of.string_value(&strings));
                    if let Some(name) = name.filter(|_| !base) {
                        path.push('.');
                        path.push_str(&name.to_string_lossy());
                    }
                    return self.descend(unit, ty, inside, path, depth);
                }
                // Between the members, or in a class that is only declared.
                path.push_str(&super::plus(offset));
                Some(())
            }
            _ if is_alias(tag) => self.descend(unit, inner?, offset, path, depth),
            _ => {
                path.push_str(&super::plus(offset));
                Some(())
            }
        }
    }

    fn size(&self, unit: &UnitHeader<Slice<'_>>, ty: UnitOffset, depth: u32) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        let abbreviations = unit
            .abbreviations(&DebugAbbrev::new(&self.abbreviations, LittleEndian))
            .ok()?;
        let mut tree = unit.entries_tree(&abbreviations, Some(ty)).ok()?;
        let root = tree.root().ok()?;
        let entry = root.entry();
        if let Some(bytes) = number(entry, dw::DW_AT_byte_size) {
            return Some(bytes);
        }
        let (tag, inner) = (entry.tag(), reference(entry));
        match tag {
            dw::DW_TAG_array_type => {
                let element = self.size(unit, inner?, depth)?;
                let all = dimensions(root).into_iter();
                Some(all.fold(element, u64::saturating_mul))
            }
            _ if is_alias(tag) => self.size(unit, inner?, depth),
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type => Some(8),
            _ => None,
        }
    }
}

fn is_alias(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_typedef
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
    )
}

/// The dimensions of an array, the outermost first.
fn dimensions(array: EntriesTreeNode<'_, '_, '_, Slice<'_>>) -> Vec<u64> {
    let mut all = Vec::new();
    let mut children = array.children();
    while let Ok(Some(child)) = children.next() {
        let entry = child.entry();
        if entry.tag() == dw::DW_TAG_subrange_type {
            let count = number(entry, dw::DW_AT_count);
            let last = || number(entry, dw::DW_AT_upper_bound);
            all.push(count.or_else(|| last()?.checked_add(1)).unwrap_or(0));
        }
    }
    all
}

fn number(entry: &Entry<'_>, name: gimli::DwAt) -> Option<u64> {
    entry.attr(name).ok()??.udata_value()
}

/// The type of a variable, a member, or an element.
fn reference(entry: &Entry<'_>) -> Option<UnitOffset> {
    match entry.attr_value(dw::DW_AT_type).ok()?? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

/// Where a member begins: a number, or an expression that adds one.
fn member_offset(entry: &Entry<'_>) -> u64 {
    let Ok(Some(attribute)) = entry.attr(dw::DW_AT_data_member_location) else {
        return 0;
    };
    if let Some(number) = attribute.udata_value() {
        return number;
    }
    let Some(expression) = attribute.exprloc_value() else {
        return 0;
    };
    let mut bytes = expression.0;
    let operation = gimli::Reader::read_u8(&mut bytes).map(gimli::DwOp);
    match operation {
        Ok(dw::DW_OP_plus_uconst) => gimli::Reader::read_uleb128(&mut bytes).unwrap_or(0),
        _ => 0,
    }
}

/// The number of the symbol at whose address a variable lies.
fn symbol(entry: &Entry<'_>) -> Option<usize> {
    let location = entry.attr(dw::DW_AT_location).ok()??.exprloc_value()?;
    let (operation, address) = location.0.slice().split_first()?;
    if gimli::DwOp(*operation) != dw::DW_OP_addr {
        return None;
    }
    let address = u64::from_le_bytes(*address.first_chunk()?);
    usize::try_from(address.checked_sub(FIRST_SYMBOL)?).ok()
}

/// Names whose addresses stand in the data.
#[derive(Default)]
struct Symbols {
    names: Vec<String>,
}

/// The bytes of a section's text: `.b8 1,2`, `.b32 .debug_abbrev`, `.b64 symbol`.
fn bytes(module: &Module, text: &str, symbols: &mut Symbols, into: &mut Vec<u8>) {
    for line in text.lines() {
        let line = line.trim();
        let Some((width, values)) = line.split_once(char::is_whitespace) else {
            continue;
        };
        let width = match width {
            ".b8" => 1,
            ".b16" => 2,
            ".b32" => 4,
            ".b64" => 8,
            _ => continue,
        };
        for value in values.split(',').map(str::trim) {
            let number = match literal(value) {
                Some(number) => number,
                None if width == 8 => {
                    symbols.names.push(value.to_owned());
                    FIRST_SYMBOL + symbols.names.len() as u64 - 1
                }
                None => within_section(module, value),
            };
            into.extend_from_slice(&number.to_le_bytes()[..width]);
        }
    }
}

fn literal(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => match text.strip_prefix('-') {
            Some(digits) => Some(digits.parse::<u64>().ok()?.wrapping_neg()),
            None => text.parse().ok(),
        },
    }
}

/// The place of `label` or `.section+12` in its section.
fn within_section(module: &Module, text: &str) -> u64 {
    let (name, plus) = text.split_once('+').unwrap_or((text, "0"));
    let start = module.debug_strings.labels.get(name).copied().unwrap_or(0);
    u64::from(start) + literal(plus).unwrap_or(0)
}
