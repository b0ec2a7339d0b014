//! `tex` against a reference made from the programming guide's formulas, and what can go wrong.

use crate::common::{Rig, fail, load};
use random::Random;
use simt::texture::{AddressMode, ChannelFormat, Filter, Image, Sampler, Texture};
use simt::{Launch, LaunchError};

/// A kernel that fetches one texel per thread: coordinates as `{x, y, z, layer}` in 16 bytes, four
/// channels in 16 bytes.
fn kernel(instruction: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 out, .param .u64 texture, .param .u64 coordinates) {{
            .reg .b32 %x, %y, %z, %layer, %i; .reg .b32 %c<4>; .reg .b64 %out, %in, %t; .reg .pred %p;
            ld.param.u64 %out, [out]; ld.param.u64 %t, [texture]; ld.param.u64 %in, [coordinates];
            mov.u32 %i, %tid.x;
            mad.wide.u32 %out, %i, 16, %out; mad.wide.u32 %in, %i, 16, %in;
            ld.global.v4.b32 {{%x, %y, %z, %layer}}, [%in];
            {instruction}
            st.global.v4.b32 [%out], {{%c0, %c1, %c2, %c3}};
            ret;
        }}"
    )
}

fn fetch(geometry: &str, kind: &str, types: &str) -> String {
    let at = match geometry {
        "1d" => "%x",
        "2d" => "%x, %y",
        "3d" => "%x, %y, %z, %z",
        "a1d" => "%layer, %x",
        "cube" => "%x, %y, %z, %z",
        "acube" => "%layer, %x, %y, %z",
        _ => "%layer, %x, %y, %y",
    };
    let level = if kind == "level." { ", 0f00000000" } else { "" };
    format!("tex.{kind}{geometry}.v4.{types} {{%c0, %c1, %c2, %c3}}, [%t, {{{at}}}]{level};")
}

/// Fetches at coordinates, four words each, with up to 1024 threads.
fn run(rig: &mut Rig, texture: u64, at: &[[u32; 4]]) -> Result<Vec<[u32; 4]>, LaunchError> {
    let bytes: Vec<u8> = at.iter().flatten().flat_map(|w| w.to_le_bytes()).collect();
    let memory = rig.device.memory_mut();
    let coordinates = memory.alloc(bytes.len() as u64).unwrap();
    memory.write(coordinates, &bytes).unwrap();
    let (words, _) = rig.run_with(2 * at.len(), |mut params| {
        params.extend(texture.to_le_bytes());
        params.extend(coordinates.to_le_bytes());
        Launch::new([1; 3], [at.len() as u32, 1, 1], params)
    })?;
    let halves = |pair: &[u64]| {
        [0, 1, 2, 3].map(|index: usize| (pair[index / 2] >> (32 * (index % 2))) as u32)
    };
    Ok(words.chunks(2).map(halves).collect())
}

/// 31 random bits.
fn bits(random: &mut Random) -> u32 {
    (random.number() >> 33) as u32
}

fn between(random: &mut Random, low: f64, high: f64) -> f32 {
    (low + (high - low) * f64::from(bits(random)) / f64::from(1u32 << 31)) as f32
}

/// An image in device memory and, as the reference sees it, texel by texel.
struct Picture {
    texture: Texture,
    /// Bits of every channel in memory, slice by slice, row by row.
    raw: Vec<u32>,
}

impl Picture {
    /// Fills an image with gaps between its rows and slices with random bits.
    fn new(rig: &mut Rig, format: ChannelFormat, channels: u8, extent: [u32; 3]) -> Picture {
        let bytes = format.bytes();
        let row = extent[0] * bytes * u32::from(channels);
        let pitch = u64::from(row).next_multiple_of(32) + 32;
        let slice = pitch * u64::from(extent[1]) + 64;
        let memory = rig.device.memory_mut();
        let address = memory.alloc(slice * u64::from(extent[2])).unwrap();
        let mut random = Random::new(u64::from(row) + 1);
        let mut raw = Vec::new();
        for z in 0..extent[2] {
            for y in 0..extent[1] {
                let at = address + u64::from(z) * slice + u64::from(y) * pitch;
                for channel in 0..u64::from(extent[0] * u32::from(channels)) {
                    let bits = match format {
                        ChannelFormat::F32 => between(&mut random, -100.0, 100.0).to_bits(),
                        // Numbers between 1/1024 and 1024 of both signs.
                        ChannelFormat::F16 => {
                            (bits(&mut random) % 0x5000 + 0x1400) | (bits(&mut random) & 1) << 15
                        }
                        // The lowest signed value every now and then.
                        _ if bits(&mut random).is_multiple_of(4) => 1 << (8 * bytes - 1),
                        _ => bits(&mut random) << 1 >> (32 - 8 * bytes),
                    };
                    let place = at + channel * u64::from(bytes);
                    memory
                        .write(place, &bits.to_le_bytes()[..bytes as usize])
                        .unwrap();
                    raw.push(bits);
                }
            }
        }
        let image = Image {
            address,
            extent,
            pitch,
            slice,
        };
        let sampler = Sampler::default();
        Picture {
            texture: Texture {
                image,
                format,
                channels,
                sampler,
            },
            raw,
        }
    }

    fn raw(&self, [x, y, z]: [u32; 3], channel: u8) -> u32 {
        let [width, height, _] = self.texture.image.extent;
        let texel = (z * height + y) * width + x;
        self.raw[(texel * u32::from(self.texture.channels) + u32::from(channel)) as usize]
    }

    /// A channel as a float: the value, or for integers what the normalised read mode makes of it.
    fn number(&self, at: [u32; 3], channel: u8) -> f64 {
        let raw = self.raw(at, channel);
        match self.texture.format {
            ChannelFormat::F32 => f64::from(f32::from_bits(raw)),
            ChannelFormat::F16 => {
                let (exponent, fraction) = (raw >> 10 & 31, raw & 1023);
                let size = f64::from(1024 + fraction) * 2f64.powi(exponent as i32 - 25);
                if raw >> 15 == 1 { -size } else { size }
            }
            ChannelFormat::U8 => f64::from(raw) / 255.0,
            ChannelFormat::U16 => f64::from(raw) / 65535.0,
            ChannelFormat::S8 => f64::from((raw as i8).max(-127)) / 127.0,
            ChannelFormat::S16 => f64::from((raw as i16).max(-32767)) / 32767.0,
            other => panic!("{other:?} is never a number"),
        }
    }

    /// The texel that the guide's addressing formulas give for a point in texels along an axis.
    fn addressed(&self, axis: usize, point: f64) -> Option<u32> {
        let n = f64::from(self.texture.image.extent[axis]);
        let sampler = &self.texture.sampler;
        let x = point / n;
        let x = match sampler.address[axis] {
            AddressMode::Wrap if sampler.normalized => x - x.floor(),
            AddressMode::Mirror if sampler.normalized => match (x.floor() as i64) % 2 {
                0 => x - x.floor(),
                _ => 1.0 - (x - x.floor()),
            },
            AddressMode::Border if !(0.0..1.0).contains(&x) => return None,
            _ => x,
        };
        Some((x * n).floor().clamp(0.0, n - 1.0) as u32)
    }

    /// The guide's linear filtering over as many axes as there are coordinates; texels are taken at
    /// their centres.
    fn linear(&self, at: &[f64], fixed: &[Option<u32>], channel: u8) -> f64 {
        let Some((&point, rest)) = at.split_last() else {
            let mut texel = [0; 3];
            for (index, of) in texel.iter_mut().zip(fixed) {
                match of {
                    Some(at) => *index = *at,
                    None => {
                        let border = self.texture.sampler.border[usize::from(channel)];
                        return f64::from(f32::from_bits(border));
                    }
                }
            }
            return self.number(texel, channel);
        };
        let low = (point - 0.5).floor();
        let alpha = ((point - 0.5 - low) * 256.0).round() / 256.0;
        let value = |place: f64| {
            let texel = self.addressed(rest.len(), place + 0.5);
            self.linear(rest, &[&[texel], fixed].concat(), channel)
        };
        (1.0 - alpha) * value(low) + alpha * value(low + 1.0)
    }
}

const MODES: [AddressMode; 4] = [
    AddressMode::Wrap,
    AddressMode::Clamp,
    AddressMode::Mirror,
    AddressMode::Border,
];

const FORMATS: [ChannelFormat; 8] = [
    ChannelFormat::U8,
    ChannelFormat::U16,
    ChannelFormat::U32,
    ChannelFormat::S8,
    ChannelFormat::S16,
    ChannelFormat::S32,
    ChannelFormat::F16,
    ChannelFormat::F32,
];

/// Random points around an image: as the kernel gets them, and in texels.
fn points(picture: &Picture, seed: u64) -> (Vec<[u32; 4]>, Vec<[f64; 3]>) {
    let mut random = Random::new(seed);
    let extent = picture.texture.image.extent.map(f64::from);
    let scale = if picture.texture.sampler.normalized {
        extent
    } else {
        [1.0; 3]
    };
    let mut words = Vec::new();
    let mut places = Vec::new();
    for _ in 0..256 {
        let axis = |axis: usize| {
            between(&mut random, -2.5 * extent[axis], 3.5 * extent[axis]) / scale[axis] as f32
        };
        let at = [0, 1, 2].map(axis);
        words.push([
            at[0].to_bits(),
            at[1].to_bits(),
            at[2].to_bits(),
            bits(&mut random) % 5,
        ]);
        places.push([0, 1, 2].map(|axis| f64::from(at[axis]) * scale[axis]));
    }
    (words, places)
}

#[test]
fn every_address_mode_and_filter_gives_the_guides_value_in_one_two_and_three_dimensions() {
    for (geometry, dimensions, extent) in [
        ("1d", 1, [13, 1, 1]),
        ("2d", 2, [7, 5, 1]),
        ("3d", 3, [6, 5, 3]),
    ] {
        let mut rig = load(&kernel(&fetch(geometry, "", "f32.f32")));
        let mut picture = Picture::new(&mut rig, ChannelFormat::F32, 2, extent);
        let mut seed = 0;
        for filter in [Filter::Point, Filter::Linear] {
            for normalized in [false, true] {
                for mode in MODES {
                    seed += 1;
                    // Another mode in y, to see that axes are not confused.
                    let other = MODES[seed as usize % 4];
                    picture.texture.sampler = Sampler {
                        address: [mode, other, mode],
                        filter,
                        normalized,
                        normalized_float: false,
                        border: [1.5f32.to_bits(), (-2.0f32).to_bits(), 3, 4],
                    };
                    let texture = rig.device.textures_mut().insert(picture.texture);
                    let (words, places) = points(&picture, seed);
                    let got = run(&mut rig, texture, &words).unwrap();
                    for (place, got) in places.iter().zip(&got) {
                        let place = &place[..dimensions];
                        for channel in 0..2u8 {
                            let expected = match filter {
                                Filter::Linear => picture.linear(place, &[], channel),
                                Filter::Point => {
                                    // A point is what is mixed at the centre of its texel.
                                    let centre: Vec<f64> =
                                        place.iter().map(|at| at.floor() + 0.5).collect();
                                    picture.linear(&centre, &[], channel)
                                }
                            };
                            let got = f32::from_bits(got[usize::from(channel)]);
                            let wrong = (f64::from(got) - expected).abs();
                            assert!(
                                wrong <= 1e-5,
                                "{geometry} {mode:?} {other:?} {filter:?} normalized {normalized} \
                                 at {place:?}: {got}, not {expected}"
                            );
                        }
                        assert_eq!(got[2..], [0, 0]);
                    }
                }
            }
        }
    }
}

#[test]
fn every_format_reads_as_its_elements_and_as_normalised_floats() {
    for format in FORMATS {
        for channels in [1, 2, 4] {
            let unsigned = matches!(
                format,
                ChannelFormat::U8 | ChannelFormat::U16 | ChannelFormat::U32
            );
            let types = match format {
                _ if format.is_float() => "f32.f32",
                _ if unsigned => "u32.f32",
                _ => "s32.f32",
            };
            let mut rig = load(&kernel(&fetch("2d", "level.", types)));
            let mut picture = Picture::new(&mut rig, format, channels, [9, 4, 1]);
            let (words, places) = points(&picture, 7);
            for normalized_float in [false, true] {
                let integers = !format.is_float() && (!normalized_float || format.bytes() == 4);
                let sampler = &mut picture.texture.sampler;
                sampler.normalized_float = normalized_float;
                // Which must not do anything to integers.
                sampler.filter = if integers {
                    Filter::Linear
                } else {
                    Filter::Point
                };
                let texture = rig.device.textures_mut().insert(picture.texture);
                let got = run(&mut rig, texture, &words).unwrap();
                for (place, got) in places.iter().zip(&got) {
                    let texel = [0, 1].map(|axis| picture.addressed(axis, place[axis]).unwrap());
                    for channel in 0..channels {
                        let at = [texel[0], texel[1], 0];
                        let unused = 32 - 8 * format.bytes();
                        let raw = picture.raw(at, channel) << unused;
                        let expected = match (integers, unsigned) {
                            (true, true) => raw >> unused,
                            (true, false) => (raw as i32 >> unused) as u32,
                            (false, _) => (picture.number(at, channel) as f32).to_bits(),
                        };
                        let got = got[usize::from(channel)];
                        assert_eq!(got, expected, "{format:?} x {channels} at {at:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn layers_are_chosen_and_clamped() {
    for (geometry, extent) in [("a1d", [9, 1, 3]), ("a2d", [6, 4, 3])] {
        let mut rig = load(&kernel(&fetch(geometry, "", "f32.f32")));
        let mut picture = Picture::new(&mut rig, ChannelFormat::U8, 4, extent);
        picture.texture.sampler.normalized_float = true;
        picture.texture.sampler.filter = Filter::Linear;
        let texture = rig.device.textures_mut().insert(picture.texture);
        let (words, places) = points(&picture, 11);
        let got = run(&mut rig, texture, &words).unwrap();
        for ((word, place), got) in words.iter().zip(&places).zip(&got) {
            let dimensions = if geometry == "a1d" { 1 } else { 2 };
            let mut fixed = vec![Some(word[3].min(2))];
            if dimensions == 1 {
                fixed.insert(0, Some(0));
            }
            for channel in 0..4u8 {
                let expected = picture.linear(&place[..dimensions], &fixed, channel);
                let got = f64::from(f32::from_bits(got[usize::from(channel)]));
                assert!(
                    (got - expected).abs() <= 1e-6,
                    "{geometry}: {got}, not {expected}"
                );
            }
        }
    }
}

#[test]
fn linear_memory_is_read_by_index_and_zero_outside() {
    let mut rig = load(&kernel(&fetch("1d", "", "s32.s32")));
    let mut picture = Picture::new(&mut rig, ChannelFormat::S16, 2, [100, 1, 1]);
    picture.texture.sampler.border = [9; 4];
    let texture = rig.device.textures_mut().insert(picture.texture);
    let indices = [0, 1, 99, 100, -1, i32::MAX, i32::MIN];
    let at = indices.map(|index| [index as u32, 0, 0, 0]);
    let got = run(&mut rig, texture, &at).unwrap();
    for (index, got) in indices.into_iter().zip(got) {
        let expected = match u32::try_from(index) {
            Ok(x @ 0..100) => [0, 1].map(|channel| picture.raw([x, 0, 0], channel) as i16 as i32),
            _ => [0; 2],
        };
        assert_eq!([got[0] as i32, got[1] as i32], expected, "texel {index}");
    }
}

#[test]
fn coordinates_that_are_no_points_of_the_plane_do_no_harm() {
    let mut rig = load(&kernel(&fetch("2d", "", "f32.f32")));
    let mut picture = Picture::new(&mut rig, ChannelFormat::F32, 1, [5, 3, 1]);
    let odd = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        -f32::MAX,
        f32::MIN_POSITIVE,
    ];
    let at: Vec<_> = odd
        .iter()
        .map(|x| [x.to_bits(), x.to_bits(), 0, 0])
        .collect();
    let values: Vec<f32> = picture
        .raw
        .iter()
        .map(|&bits| f32::from_bits(bits))
        .collect();
    for mode in MODES {
        for filter in [Filter::Point, Filter::Linear] {
            let sampler = &mut picture.texture.sampler;
            (sampler.address, sampler.filter, sampler.normalized) = ([mode; 3], filter, true);
            let texture = rig.device.textures_mut().insert(picture.texture);
            let got = run(&mut rig, texture, &at).unwrap();
            assert!(
                got.iter()
                    .all(|bits| f32::from_bits(bits[0]).abs() <= 100.0)
            );
            if mode == AddressMode::Clamp && filter == Filter::Point {
                let [infinite, negative] = [1, 2].map(|index: usize| f32::from_bits(got[index][0]));
                assert_eq!((infinite, negative), (values[14], values[0]));
            }
        }
    }
}

#[test]
fn lanes_that_take_no_part_keep_their_registers_and_texels_are_resident() {
    let body = "and.b32 %i, %i, 1; setp.eq.u32 %p, %i, 1;
        mov.b32 %c0, 7; mov.b32 %c1, 8; mov.b32 %c2, 9; mov.b32 %c3, 10;
        @%p tex.2d.v4.u32.f32 {%c0, _, %c2, %c3}, [%t, {%x, 0f3F800000}];
        @!%p bra end;
        setp.ne.u32 %p, %i, %i;
        tex.1d.v4.u32.s32 {%c0, %c1, %c2, %c3}|%p, [%t, {%x}];
        selp.b32 %c3, 1, 0, %p;
        end:";
    let mut rig = load(&kernel(body));
    let picture = Picture::new(&mut rig, ChannelFormat::U8, 1, [4, 2, 1]);
    let texture = rig.device.textures_mut().insert(picture.texture);
    let got = run(&mut rig, texture, &[[2, 0, 0, 0]; 40]).unwrap();
    for (lane, got) in got.into_iter().enumerate() {
        let expected = match lane % 2 {
            0 => [7, 8, 9, 10],
            _ => [picture.raw([2, 0, 0], 0), 0, 0, 1],
        };
        assert_eq!(got, expected, "lane {lane}");
    }
}

#[test]
fn bad_handles_and_stray_images_end_the_launch() {
    let mut rig = load(&kernel(&fetch("2d", "", "f32.f32")));
    let picture = Picture::new(&mut rig, ChannelFormat::F32, 4, [8, 8, 1]);
    let texture = rig.device.textures_mut().insert(picture.texture);
    let at = [[0; 4]; 4];
    assert!(run(&mut rig, texture, &at).is_ok());
    for handle in [0, 1, texture + 1, u64::MAX] {
        let error = run(&mut rig, handle, &at).unwrap_err();
        assert!(
            matches!(error, LaunchError::InvalidTexture { handle: named, ref at } if named == handle && at.line > 0),
            "{error}"
        );
    }
    // An image outside of memory, which is what a freed one is until its place is used again.
    let mut stray = picture.texture;
    stray.image.address += 1 << 29;
    let stray_handle = rig.device.textures_mut().insert(stray);
    let error = run(&mut rig, stray_handle, &at).unwrap_err();
    assert!(
        matches!(error, LaunchError::IllegalAddress { address, bytes: 16, write: false, .. } if address == stray.image.address),
        "{error}"
    );
    assert!(rig.device.textures_mut().remove(texture).is_some());
    let error = run(&mut rig, texture, &at).unwrap_err();
    assert!(
        matches!(error, LaunchError::InvalidTexture { .. }),
        "{error}"
    );
    assert_ne!(rig.device.textures_mut().insert(picture.texture), texture);
}

/// Directions through the middles of all texels, by the guide's table read the other way around: where on the cube the
/// texels of a face lie.
#[test]
fn a_direction_reads_the_texel_that_it_meets() {
    let size = 4;
    for (geometry, cubemaps) in [("cube", 1), ("acube", 2)] {
        for (kind, filter) in [("", Filter::Point), ("level.", Filter::Linear)] {
            let mut rig = load(&kernel(&fetch(geometry, kind, "f32.f32")));
            let extent = [size, size, 6 * cubemaps];
            let mut picture = Picture::new(&mut rig, ChannelFormat::F32, 1, extent);
            picture.texture.sampler.filter = filter;
            let texture = rig.device.textures_mut().insert(picture.texture);
            let (mut at, mut want) = (Vec::new(), Vec::new());
            for (index, &raw) in picture.raw.iter().enumerate() {
                let texel = index as u32 % (size * size);
                let face = index as u32 / (size * size);
                let middle = |texel: u32| (texel as f32 + 0.5) / size as f32 * 2.0 - 1.0;
                let (s, t) = (middle(texel % size), middle(texel / size));
                let direction = match face % 6 {
                    0 => [1.0, -t, -s],
                    1 => [-1.0, -t, s],
                    2 => [s, 1.0, t],
                    3 => [s, -1.0, -t],
                    4 => [s, -t, 1.0],
                    _ => [-s, -t, -1.0],
                };
                // How long it is does not matter.
                let [x, y, z] = direction.map(|of: f32| (of * (1 << (index % 4)) as f32).to_bits());
                at.push([x, y, z, face / 6]);
                want.push([raw, 0, 0, 0]);
            }
            let got = run(&mut rig, texture, &at).unwrap();
            assert_eq!(got, want, "{geometry} {kind}");
        }
    }
}

#[test]
fn other_forms_are_refused_by_name() {
    for (instruction, named) in [
        (
            "tex.cube.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%d0, {%r4, %r5, %r6, %r6}];",
            "tex.cube",
        ),
        (
            "tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}, [%d0, {%f4, %f5}];",
            "tex.2d.v4.f16.f32",
        ),
        (
            "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [picture, {%f4, %f5}];",
            "texture reference picture",
        ),
        (
            "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, %d1, {%f4, %f5}];",
            "separate sampler",
        ),
        (
            "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f4, %f5}], {%r0, %r1};",
            "offsets",
        ),
        (
            "tex.3d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f4, %f5}];",
            "fewer coordinates",
        ),
        (
            "tld4.r.cube.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f4, %f5, %f6, %f6}];",
            "tld4.r.cube",
        ),
        (
            "sured.b.add.2d.u32.trap [%d0, {%r1, %r2}], %r0;",
            "sured.b.add.2d",
        ),
    ] {
        match fail(1, instruction) {
            LaunchError::Unsupported { what, line, .. } => {
                assert!(what.contains(named) && line > 0, "{what} at line {line}");
            }
            other => panic!("{instruction} {other}"),
        }
    }
}
