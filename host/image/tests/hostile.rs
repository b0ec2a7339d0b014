//! The readers of fat binaries and ELF files on damaged bytes: no panic, and no more memory than the
//! bytes can be worth.
//!
//! One test alone in its program, because what is allocated is counted for the whole process.
//! `FUZZ_ROUNDS` says how many damaged files to read, 20000 without it.

use image::elf;
use image::fatbin::{self, MAGIC, Wrapper, flag};
use random::Random;

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// Most bytes that a reader may hold at once for files as small as these: the largest window of the
/// zstd decoder, and what it has unpacked so far.
const MOST: usize = 192 << 20;

fn put(bytes: &mut [u8], at: usize, value: u64, width: usize) {
    if let Some(field) = bytes.get_mut(at..at + width) {
        field.copy_from_slice(&value.to_le_bytes()[..width]);
    }
}

/// A fat binary with one entry per packing, PTX and cubin in turn.
fn fatbin(text: &[u8]) -> Vec<u8> {
    let zstd = ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest);
    let packed = [
        (0, text.to_vec()),
        (flag::LZ4, lz4_flex::block::compress(text)),
        (flag::ZSTD, zstd),
    ];
    let mut body = Vec::new();
    for (number, (packing, payload)) in packed.iter().enumerate() {
        let padded = payload.len().next_multiple_of(8);
        let mut entry = vec![0; 64];
        put(&mut entry, 0, 1 + number as u64 % 2, 2);
        put(&mut entry, 4, 64, 4);
        put(&mut entry, 8, padded as u64, 8);
        put(&mut entry, 16, payload.len() as u64, 4);
        put(&mut entry, 28, 90, 4);
        put(&mut entry, 40, flag::ADDRESS64 | packing, 8);
        put(&mut entry, 56, text.len() as u64, 8);
        body.extend(entry);
        body.extend(payload);
        body.resize(body.len() + padded - payload.len(), 0);
    }
    let mut whole = vec![0; 16];
    put(&mut whole, 0, u64::from(MAGIC), 4);
    put(&mut whole, 4, 1, 2);
    put(&mut whole, 6, 16, 2);
    put(&mut whole, 8, body.len() as u64, 8);
    whole.extend(body);
    whole
}

/// Name, type, link, size of an entry, contents.
type Section<'a> = (&'a [u8], u64, u64, u64, &'a [u8]);

/// An ELF file with device code, PTX text, symbols and a dynamic section.
fn elf_file(device_code: &[u8], text: &[u8]) -> Vec<u8> {
    const NAMES: &[u8] =
        b"\0.nv_fatbin\0.nv_debug_ptx_txt\0.symtab\0.strtab\0.dynamic\0.shstrtab\0\
                           libcuda.so.1\0kernel\0";
    let name = |wanted: &[u8]| {
        let found = NAMES.windows(wanted.len()).position(|part| part == wanted);
        found.expect("a name that is there") as u64
    };
    let mut symbols = vec![0; 48];
    put(&mut symbols, 24, name(b"kernel\0"), 4);
    put(&mut symbols, 28, 0x1012, 2);
    put(&mut symbols, 30, 1, 2);
    let mut dynamic = vec![0; 32];
    put(&mut dynamic, 0, 1, 8);
    put(&mut dynamic, 8, name(b"libcuda.so.1"), 8);
    let sections: [Section<'_>; 6] = [
        (b".nv_fatbin\0", 1, 0, 0, device_code),
        (b".nv_debug_ptx_txt\0", 1, 0, 0, text),
        (b".symtab\0", 2, 4, 24, &symbols),
        (b".strtab\0", 3, 0, 0, NAMES),
        (b".dynamic\0", 6, 4, 16, &dynamic),
        (b".shstrtab\0", 3, 0, 0, NAMES),
    ];
    let mut file = vec![0; 64];
    let mut table = vec![0; 64];
    for (title, kind, link, entry, contents) in sections {
        let mut header = vec![0; 64];
        put(&mut header, 0, name(title), 4);
        put(&mut header, 4, kind, 4);
        put(&mut header, 24, file.len() as u64, 8);
        put(&mut header, 32, contents.len() as u64, 8);
        put(&mut header, 40, link, 4);
        put(&mut header, 56, entry, 8);
        table.extend(header);
        file.extend(contents);
        file.resize(file.len().next_multiple_of(8), 0);
    }
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let table_at = file.len() as u64;
    for (at, value, width) in [
        (16, 3, 2),
        (18, 62, 2),
        (20, 1, 4),
        (40, table_at, 8),
        (52, 64, 2),
        (54, 56, 2),
        (58, 64, 2),
        (60, table.len() as u64 / 64, 2),
        (62, sections.len() as u64, 2),
    ] {
        put(&mut file, at, value, width);
    }
    file.extend(table);
    file
}

/// Asks the readers everything; true when there was device code whose contents could be read.
fn read(bytes: &[u8]) -> bool {
    let _ = (fatbin::header(bytes), Wrapper::read(bytes));
    let mut readable = false;
    let mut look = |found: Vec<Result<fatbin::Fatbin<'_>, fatbin::FatbinError>>| {
        for fatbin in found.into_iter().flatten() {
            let _ = (fatbin.best_ptx(90), fatbin.best_elf(90));
            for entry in &fatbin.entries {
                readable |= entry.text().is_ok();
            }
        }
    };
    look(fatbin::scan(bytes));
    if let Ok(found) = elf::scan(bytes) {
        look(found.fatbins);
    }
    let _ = (elf::kernels(bytes), elf::embedded_ptx(bytes));
    if let Some(header) = bytes.first_chunk() {
        let _ = elf::length(header);
    }
    readable
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    const VALUES: [u64; 9] = [
        0,
        1,
        0x7f,
        0xffff,
        1 << 20,
        1 << 31,
        u32::MAX as u64,
        1 << 63,
        u64::MAX,
    ];
    for _ in 0..1 + random.index(4) {
        let at = random.index(bytes.len());
        let aligned = at & !3;
        match random.index(8) {
            0..3 => bytes[at] = random.index(256) as u8,
            3 => bytes[at] ^= 1 << random.index(8),
            4 | 5 => {
                let value = random.pick(&VALUES);
                put(bytes, aligned, value, random.pick(&[2, 4, 8]));
            }
            6 => {
                let end = bytes.len().min(at + 1 + random.index(64));
                let piece = bytes[at..end].to_vec();
                let to = random.index(bytes.len());
                bytes.splice(to..to, piece);
            }
            _ => bytes.truncate(at.max(1)),
        }
    }
}

/// The most that was held at once while `work` ran.
fn peak(work: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    work();
    MEMORY.peak_usage() - before
}

#[test]
fn damaged_files_are_read_without_panic_and_within_memory() {
    let text = ".version 8.2\n.target sm_90\n.address_size 64\n".repeat(12);
    let code = fatbin(text.as_bytes());
    let file = elf_file(&code, text.as_bytes());
    assert!(read(&code));
    let found = elf::scan(&file).expect("a well-formed file");
    assert_eq!((found.fatbins.len(), found.driver), (1, true));
    assert_eq!(elf::kernels(&file).expect("symbols"), ["kernel"]);
    assert!(elf::embedded_ptx(&file).is_some());

    for whole in [&code, &file] {
        for end in 0..whole.len() {
            read(&whole[..end]);
        }
    }
    let rounds = std::env::var("FUZZ_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok());
    let mut random = Random::new(1);
    let mut readable = [0; 2];
    for round in 0..rounds.unwrap_or(20000) {
        let mut bytes = if round % 2 == 0 {
            code.clone()
        } else {
            file.clone()
        };
        damage(&mut bytes, &mut random);
        let mut good = false;
        let held = peak(|| good = read(&bytes));
        assert!(
            held <= MOST,
            "round {round}: {held} bytes for {}",
            bytes.len()
        );
        readable[usize::from(good)] += 1;
    }
    assert!(
        readable.iter().all(|&count| count > 100),
        "damage should do some harm, not only harm: {readable:?}"
    );

    bombs();
}

/// A frame of blocks that each repeat one byte 128 KiB long, as large as `blocks` say.
fn bomb(blocks: usize) -> Vec<u8> {
    // Magic number, no content size, the smallest window of 128 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x38];
    for number in 1..=blocks {
        let last = u32::from(number == blocks);
        let header = (128 << 10) << 3 | 1 << 1 | last;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b' ');
    }
    frame
}

/// Small payloads that unpack to a lot are held to what the entry promises, and an entry cannot
/// promise more than its packing can give.
fn bombs() {
    let with = |payload: &[u8], packing: u64, promised: u64| {
        let padded = payload.len().next_multiple_of(8);
        let mut bytes = vec![0; 80];
        put(&mut bytes, 0, u64::from(MAGIC), 4);
        put(&mut bytes, 6, 16, 2);
        put(&mut bytes, 8, 64 + padded as u64, 8);
        put(&mut bytes, 16, 1, 2);
        put(&mut bytes, 20, 64, 4);
        put(&mut bytes, 24, padded as u64, 8);
        put(&mut bytes, 32, payload.len() as u64, 4);
        put(&mut bytes, 56, packing, 8);
        put(&mut bytes, 72, promised, 8);
        bytes.extend(payload);
        bytes.resize(80 + padded, 0);
        bytes
    };
    let small = bomb(8);
    assert!(
        read(&with(&small, flag::ZSTD, 1 << 20)),
        "a frame that keeps its promise"
    );
    let large = bomb(8000);
    for promised in [0, 1000, 1 << 20, u64::MAX] {
        let bytes = with(&large, flag::ZSTD, promised);
        let held = peak(|| assert!(!read(&bytes)));
        assert!(held <= 8 << 20, "{held} bytes for a promise of {promised}");
    }
    for packing in [flag::LZ4, flag::ZSTD] {
        let held = peak(|| assert!(!read(&with(&[0; 64], packing, 1 << 32))));
        assert!(
            held <= 1 << 20,
            "{held} bytes for 64 bytes that promise 4 GiB"
        );
    }
}
