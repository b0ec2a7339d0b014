//! Several PTX texts as one module, by the driver's linker.

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use crate::common::{alloc, cu, ok, read, start};
use cudarun_shim_cuda::exports::*;
use driver::sys::*;

/// Stores what another unit's function makes of another unit's variable.
const KERNEL: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.extern .global .u32 start;
.extern .func (.param .b32 out) next (.param .b32 in);
.visible .entry store(.param .u64 at) {
    .reg .u64 %a; .reg .u32 %v<3>;
    ld.param.u64 %a, [at];
    ld.global.u32 %v1, [start];
    {
        .param .b32 in; .param .b32 out;
        st.param.b32 [in], %v1;
        call.uni (out), next, (in);
        ld.param.b32 %v2, [out];
    }
    st.global.u32 [%a], %v2; ret;
}
";
const NEXT: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.visible .global .u32 start = 41;
.visible .func (.param .b32 out) next (.param .b32 in) {
    .reg .u32 %v<3>;
    ld.param.u32 %v1, [in]; add.u32 %v2, %v1, 1; st.param.b32 [out], %v2; ret;
}
";

/// `CUjitInputType`: PTX text, and an archive of objects.
const PTX: i32 = 1;
const LIBRARY: i32 = 4;

fn add(link: CUlinkState, kind: i32, bytes: &[u8]) -> CUresult {
    cu!(cuLinkAddData_v2(
        link,
        kind,
        bytes.as_ptr().cast_mut().cast(),
        bytes.len(),
        null(),
        0,
        null_mut(),
        null_mut()
    ))
}

fn link(units: &[&CStr]) -> (CUlinkState, CUresult, *mut c_void) {
    let (mut link, mut image, mut size) = (null_mut(), null_mut(), 0);
    ok(cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link)));
    for unit in units {
        ok(add(link, PTX, unit.to_bytes_with_nul()));
    }
    let result = cu!(cuLinkComplete(link, &mut image, &mut size));
    (link, result, image)
}

/// A kernel of a finished link, which ends.
fn loaded(link: CUlinkState, image: *mut c_void, name: &CStr) -> (CUmodule, CUfunction) {
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cu!(cuModuleLoadData(&mut module, image)));
    ok(cu!(cuLinkDestroy(link)));
    ok(cu!(cuModuleGetFunction(
        &mut function,
        module,
        name.as_ptr()
    )));
    (module, function)
}

#[test]
fn units_that_need_each_other_run_when_linked() {
    let _turn = start();
    let (state, result, image) = link(&[KERNEL, NEXT]);
    ok(result);
    let (module, function) = loaded(state, image, c"store");
    let mut at = alloc(4);
    let mut params = [(&raw mut at).cast::<c_void>()];
    let launched = cu!(cuLaunchKernel(
        function,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        null_mut(),
        params.as_mut_ptr(),
        null_mut()
    ));
    ok(launched);
    assert_eq!(read(at, 4), 42u32.to_le_bytes());
    let (mut variable, mut bytes) = (0, 0);
    let name = c"start".as_ptr();
    let found = cu!(cuModuleGetGlobal_v2(
        &mut variable,
        &mut bytes,
        module,
        name
    ));
    ok(found);
    assert_eq!(
        (read(variable, 4), bytes),
        (41u32.to_le_bytes().to_vec(), 4)
    );
    ok(cu!(cuModuleUnload(module)));
}

/// Threads of all blocks meet; the first one of each stores what the barrier answers.
const MEETING: &CStr = c"
.version 7.0
.target sm_70
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle (.param .b32 scope);
.extern .func (.param .b32 error) cudaCGSynchronize (.param .b64 handle, .param .b32 flags);
.visible .entry meet(.param .u64 at) {
    .reg .u64 %a<2>, %handle; .reg .u32 %block, %error; .reg .pred %none;
    {
        .param .b32 scope; .param .b64 handle;
        st.param.b32 [scope], 1;
        call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
        ld.param.b64 %handle, [handle];
    }
    {
        .param .b64 handle; .param .b32 flags; .param .b32 error;
        st.param.b64 [handle], %handle; st.param.b32 [flags], 0;
        call.uni (error), cudaCGSynchronize, (handle, flags);
        ld.param.b32 %error, [error];
    }
    setp.eq.u64 %none, %handle, 0;
    @%none add.u32 %error, %error, 16;
    ld.param.u64 %a0, [at]; mov.u32 %block, %ctaid.x; mad.wide.u32 %a1, %block, 4, %a0;
    st.global.u32 [%a1], %error; ret;
}
";

#[test]
fn the_barrier_of_a_grid_is_linked_in_place_of_nvidias() {
    let _turn = start();
    let (mut link, mut image, mut size) = (null_mut(), null_mut(), 0);
    ok(cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link)));
    ok(add(link, PTX, MEETING.to_bytes_with_nul()));
    let other = b"!<arch>\nmine.o/";
    assert_eq!(add(link, LIBRARY, other), CUresult::NOT_SUPPORTED);
    ok(add(link, LIBRARY, b"!<arch>\ncuda_device_runtime.o/"));
    ok(cu!(cuLinkComplete(link, &mut image, &mut size)));
    let (module, function) = loaded(link, image, c"meet");
    let mut at = alloc(8);
    let mut params = [(&raw mut at).cast::<c_void>()];
    let params = params.as_mut_ptr();
    let stream = null_mut();
    let launch = cu!(cuLaunchCooperativeKernel(
        function, 2, 1, 1, 64, 1, 1, 0, stream, params
    ));
    ok(launch);
    assert_eq!(read(at, 8), [0; 8]);
    let extra = null_mut();
    let launch = cu!(cuLaunchKernel(
        function, 2, 1, 1, 64, 1, 1, 0, stream, params, extra
    ));
    ok(launch);
    // cudaErrorInvalidValue, and no handle.
    assert_eq!(read(at, 8), [17, 0, 0, 0, 17, 0, 0, 0]);
    ok(cu!(cuModuleUnload(module)));
}

#[test]
fn what_is_missing_or_there_twice_is_refused() {
    let _turn = start();
    for units in [[KERNEL, KERNEL], [NEXT, NEXT]] {
        let (state, result, _) = link(&units);
        assert_eq!(result, CUresult::INVALID_PTX);
        ok(cu!(cuLinkDestroy(state)));
    }
    let (state, result, _) = link(&[]);
    assert_eq!(result, CUresult::INVALID_VALUE);
    ok(cu!(cuLinkDestroy(state)));
}

/// What a program lets the compiler or the linker write, full of something else.
struct Logs {
    info: [u8; 64],
    errors: [u8; 64],
    values: [*mut c_void; 5],
}

/// Time, buffer and size for information, and likewise for errors.
const NAMES: [CUjit_option; 5] = [2, 3, 4, 5, 6];

impl Logs {
    fn new() -> Box<Logs> {
        let mut logs = Box::new(Logs {
            info: [b'x'; 64],
            errors: [b'x'; 64],
            values: [null_mut(); 5],
        });
        let room = std::ptr::without_provenance_mut(64);
        let (info, errors) = ((&raw mut logs.info).cast(), (&raw mut logs.errors).cast());
        let time = std::ptr::without_provenance_mut(usize::MAX);
        logs.values = [time, info, room, errors, room];
        logs
    }

    fn options(&mut self) -> (*mut CUjit_option, *mut *mut c_void) {
        (NAMES.as_ptr().cast_mut(), self.values.as_mut_ptr())
    }

    /// Both texts, which are as long as the sizes say.
    fn texts(&self) -> [String; 2] {
        let milliseconds = f32::from_bits(self.values[0].addr() as u32);
        assert!(milliseconds > 0.0 && milliseconds < 6e5, "{milliseconds}");
        [(&self.info, 2), (&self.errors, 4)].map(|(buffer, size)| {
            let text = CStr::from_bytes_until_nul(buffer).unwrap();
            assert_eq!(text.count_bytes(), self.values[size].addr());
            text.to_str().unwrap().to_owned()
        })
    }
}

/// A link with logs of these texts, and what it came to.
fn logged(units: &[&CStr]) -> (CUresult, Box<Logs>) {
    let mut logs = Logs::new();
    let (mut link, mut image, mut size) = (null_mut(), null_mut(), 0);
    let (names, values) = logs.options();
    ok(cu!(cuLinkCreate_v2(5, names, values, &mut link)));
    let mut result = CUresult::SUCCESS;
    for (unit, name) in units.iter().zip([c"first.ptx", c"second.ptx"]) {
        let (bytes, at) = (unit.to_bytes_with_nul(), unit.as_ptr().cast_mut().cast());
        let none = (0, null_mut(), null_mut());
        let name = name.as_ptr();
        result = cu!(cuLinkAddData_v2(
            link,
            1,
            at,
            bytes.len(),
            name,
            none.0,
            none.1,
            none.2
        ));
    }
    if result == CUresult::SUCCESS {
        result = cu!(cuLinkComplete(link, &mut image, &mut size));
    }
    ok(cu!(cuLinkDestroy(link)));
    (result, logs)
}

#[test]
fn the_logs_of_a_link_say_why_it_failed_and_nothing_else() {
    let _turn = start();
    let (result, logs) = logged(&[KERNEL, NEXT]);
    ok(result);
    assert_eq!(logs.texts(), ["", ""]);

    let (result, logs) = logged(&[KERNEL, c"this is no PTX"]);
    assert_eq!(result, CUresult::INVALID_PTX);
    let [info, errors] = logs.texts();
    assert_eq!(info, "");
    assert!(errors.starts_with("second.ptx: not PTX"), "{errors}");

    // What is missing shows when the link is complete.
    let (result, logs) = logged(&[KERNEL, c".version 7.0\n.target sm_70\n"]);
    assert_eq!(result, CUresult::INVALID_PTX);
    let [info, errors] = logs.texts();
    assert_eq!(info, "");
    assert!(errors.starts_with("first.ptx needs next"), "{errors}");
}

#[test]
fn the_logs_of_a_load_say_why_it_failed_and_nothing_else() {
    let _turn = start();
    let bad = c".version 7.0\n.target sm_70\n.address_size 64\n.entry k( {\n";
    for (text, code) in [(NEXT, CUresult::SUCCESS), (bad, CUresult::INVALID_PTX)] {
        let image = text.as_ptr().cast();
        let (mut logs, mut module) = (Logs::new(), null_mut());
        let (names, values) = logs.options();
        let loaded = cu!(cuModuleLoadDataEx(&mut module, image, 5, names, values));
        assert_eq!(loaded, code);
        let of_module = logs.texts();

        let (mut logs, mut library) = (Logs::new(), null_mut());
        let (names, values) = logs.options();
        let none = (null_mut(), null_mut());
        let loaded = cu!(cuLibraryLoadData(
            &mut library,
            image,
            names,
            values,
            5,
            none.0,
            none.1,
            0
        ));
        assert_eq!(loaded, code);
        let of_library = logs.texts();
        for [info, errors] in [of_module, of_library] {
            assert_eq!(info, "");
            assert_eq!(errors.is_empty(), code == CUresult::SUCCESS, "{errors}");
        }
    }
}
