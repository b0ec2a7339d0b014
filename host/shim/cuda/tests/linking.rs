//! Several PTX texts as one module, by the driver's linker.

mod common;

use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};

use common::{alloc, cu, ok, read, start};
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

fn link(units: &[&CStr]) -> (CUlinkState, CUresult, *mut c_void) {
    let (mut link, mut image, mut size) = (null_mut(), null_mut(), 0);
    ok(cu!(cuLinkCreate_v2(0, null_mut(), null_mut(), &mut link)));
    for unit in units {
        let bytes = unit.to_bytes_with_nul();
        let added = cu!(cuLinkAddData_v2(
            link,
            1,
            bytes.as_ptr().cast_mut().cast(),
            bytes.len(),
            null(),
            0,
            null_mut(),
            null_mut()
        ));
        ok(added);
    }
    let result = cu!(cuLinkComplete(link, &mut image, &mut size));
    (link, result, image)
}

#[test]
fn units_that_need_each_other_run_when_linked() {
    let _turn = start();
    let (state, result, image) = link(&[KERNEL, NEXT]);
    ok(result);
    let (mut module, mut function) = (null_mut(), null_mut());
    ok(cu!(cuModuleLoadData(&mut module, image)));
    ok(cu!(cuLinkDestroy(state)));
    let name = c"store".as_ptr();
    ok(cu!(cuModuleGetFunction(&mut function, module, name)));
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
