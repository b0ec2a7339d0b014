//! The fat binary reader on bytes made here: every packing, and garbage.

use image::fatbin::{EntryKind, Fatbin, FatbinError, MAGIC, Packing, Wrapper, flag, header, scan};
use proptest::prelude::*;

/// An image as a test describes it.
#[derive(Clone, Debug)]
struct Image {
    kind: u16,
    sm: u32,
    packing: Packing,
    flags: u64,
    bytes: Vec<u8>,
    name: String,
}

fn image(kind: u16, sm: u32, packing: Packing, bytes: &[u8]) -> Image {
    Image {
        kind,
        sm,
        packing,
        flags: flag::ADDRESS64,
        bytes: bytes.to_vec(),
        name: String::new(),
    }
}

/// Lays out a fat binary as nvcc does.
fn build(images: &[Image]) -> Vec<u8> {
    let mut body = Vec::new();
    for image in images {
        let (packed, bit) = match image.packing {
            Packing::Plain => (image.bytes.clone(), 0),
            Packing::Lz4 => (lz4_flex::block::compress(&image.bytes), flag::LZ4),
            Packing::Zstd => (
                ruzstd::encoding::compress_to_vec(
                    image.bytes.as_slice(),
                    ruzstd::encoding::CompressionLevel::Fastest,
                ),
                flag::ZSTD,
            ),
        };
        let plain = image.packing == Packing::Plain;
        let padded = packed.len().next_multiple_of(8);
        let extra = image.name.len().next_multiple_of(8);
        let mut entry = vec![0u8; 64 + extra];
        let mut put = |at: usize, bytes: &[u8]| entry[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &image.kind.to_le_bytes());
        put(2, &0x101u16.to_le_bytes());
        put(4, &(64 + extra as u32).to_le_bytes());
        put(8, &(padded as u64).to_le_bytes());
        put(
            16,
            &(if plain { 0 } else { packed.len() as u32 }).to_le_bytes(),
        );
        put(24, &2u16.to_le_bytes());
        put(26, &8u16.to_le_bytes());
        put(28, &image.sm.to_le_bytes());
        put(32, &64u32.to_le_bytes());
        put(36, &(image.name.len() as u32).to_le_bytes());
        put(40, &(image.flags | bit).to_le_bytes());
        put(
            56,
            &(if plain { 0 } else { image.bytes.len() as u64 }).to_le_bytes(),
        );
        put(64, image.name.as_bytes());
        body.extend(entry);
        body.extend(&packed);
        body.resize(body.len() + padded - packed.len(), 0);
    }
    let mut fatbin = Vec::new();
    fatbin.extend(MAGIC.to_le_bytes());
    fatbin.extend(1u16.to_le_bytes());
    fatbin.extend(16u16.to_le_bytes());
    fatbin.extend((body.len() as u64).to_le_bytes());
    fatbin.extend(body);
    fatbin
}

const PTX: &str = ".version 8.2\n.target sm_90\n.address_size 64\n";

#[test]
fn every_packing_gives_the_same_text() {
    let mut text = PTX.repeat(40).into_bytes();
    text.push(0);
    for packing in [Packing::Plain, Packing::Lz4, Packing::Zstd] {
        let bytes = build(&[Image {
            name: "a.cu".into(),
            ..image(1, 90, packing, &text)
        }]);
        let fatbin = Fatbin::read(&bytes).expect("a well-formed fat binary");
        assert_eq!(fatbin.bytes, bytes.len());
        let [entry] = &fatbin.entries[..] else {
            panic!("one entry")
        };
        assert_eq!(
            (entry.kind, entry.sm, entry.packing),
            (EntryKind::Ptx, 90, packing)
        );
        assert_eq!(entry.version, (8, 2));
        assert_eq!(entry.identifier.as_deref(), Some("a.cu"));
        assert_eq!(
            entry.text().as_deref(),
            Ok(PTX.repeat(40).as_str()),
            "{packing:?}"
        );
    }
}

#[test]
fn the_newest_ptx_that_is_not_too_new_is_chosen() {
    let specific = |sm| Image {
        flags: flag::ARCHITECTURE,
        ..image(1, sm, Packing::Plain, b"s")
    };
    let plain = |sm| image(1, sm, Packing::Plain, b"p");
    let chosen = |images: &[Image]| {
        let bytes = build(images);
        let fatbin = Fatbin::read(&bytes).expect("a well-formed fat binary");
        fatbin
            .best_ptx(90)
            .map(|entry| (entry.sm, entry.specific()))
    };
    assert_eq!(
        chosen(&[plain(70), plain(80), plain(100)]),
        Some((80, false))
    );
    assert_eq!(chosen(&[specific(90), plain(80)]), Some((90, true)));
    assert_eq!(chosen(&[specific(80)]), None);
    assert_eq!(chosen(&[image(2, 90, Packing::Plain, b"elf")]), None);
}

#[test]
fn a_section_holds_several_and_junk_between_them() {
    let one = build(&[image(1, 70, Packing::Zstd, PTX.as_bytes())]);
    let mut section = one.clone();
    section.resize(section.len().next_multiple_of(8) + 16, 0);
    section.extend(&one);
    assert_eq!(
        scan(&section).iter().filter(|found| found.is_ok()).count(),
        2
    );
    section.truncate(section.len() - 8);
    let found = scan(&section);
    assert!(found[0].is_ok());
    assert!(matches!(found[1], Err(FatbinError::Truncated(_))));
}

#[test]
fn false_sizes_are_errors() {
    let good = build(&[image(1, 70, Packing::Lz4, PTX.as_bytes())]);
    let broken = |at: usize, value: u64, width: usize| {
        let mut bytes = good.clone();
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        Fatbin::read(&bytes).and_then(|fatbin| fatbin.entries[0].text())
    };
    assert_eq!(broken(0, 1, 4), Err(FatbinError::NotAFatbin));
    assert!(broken(8, u64::MAX, 8).is_err());
    assert!(
        broken(16 + 4, 1, 4).is_err(),
        "an entry header shorter than itself"
    );
    assert!(broken(16 + 8, u64::MAX, 8).is_err());
    assert_eq!(
        broken(16 + 56, u64::MAX, 8),
        Err(FatbinError::Corrupt("LZ4"))
    );
    assert_eq!(broken(16 + 56, 3, 8), Err(FatbinError::Corrupt("LZ4")));
}

#[test]
fn a_wrapper_is_recognised_by_its_magic() {
    let mut bytes = 0x4662_43b1u32.to_le_bytes().to_vec();
    bytes.extend(2u32.to_le_bytes());
    bytes.extend(0x1000u64.to_le_bytes());
    bytes.extend(0x2000u64.to_le_bytes());
    let wrapper = Wrapper {
        version: 2,
        data: 0x1000,
        second: 0x2000,
    };
    assert_eq!(Wrapper::read(&bytes), Some(wrapper));
    assert_eq!(Wrapper::read(&bytes[..20]), None);
    assert_eq!(Wrapper::read(PTX.as_bytes()), None);
}

fn exercise(bytes: &[u8]) {
    let _ = header(bytes);
    let _ = Wrapper::read(bytes);
    for fatbin in scan(bytes).into_iter().flatten() {
        let _ = (fatbin.best_ptx(90), fatbin.best_elf(90));
        for entry in &fatbin.entries {
            let _ = entry.text();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes);
        let mut headed = MAGIC.to_le_bytes().to_vec();
        headed.extend(bytes);
        exercise(&headed);
    }

    #[test]
    fn damaged_fat_binaries_are_read_without_panic(
        packing in prop_oneof![Just(Packing::Plain), Just(Packing::Lz4), Just(Packing::Zstd)],
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = build(&[
            image(1, 90, packing, PTX.repeat(9).as_bytes()),
            image(2, 90, packing, &[7; 100]),
        ]);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        exercise(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        exercise(&bytes);
    }
}
