//! Checks that are called, in functions with many of them.

use rewrite::{Config, MOST_INLINED};

use super::made::rewritten_with;

/// A kernel with loads and stores of words, each of its own.
fn text(loads: u32, stores: u32, most_inlined: Option<u32>) -> String {
    let at = |n: u32| n * 4;
    let loads = (0..loads).map(|n| format!("ld.global.u32 %v, [%a+{}]; ", at(n)));
    let stores = (0..stores).map(|n| format!("st.global.u32 [%b+{}], %v; ", at(n)));
    let accesses: String = loads.chain(stores).collect();
    let body = format!(
        ".entry k(.param .u64 a, .param .u64 b) {{ .reg .u64 %a, %b; .reg .u32 %v;\n\
         ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; {accesses} ret; }}"
    );
    let config = Config {
        most_inlined,
        ..Config::default()
    };
    rewritten_with(&body, &config).text
}

/// The calls of called checks, and their functions.
fn called(text: &str) -> (usize, usize) {
    let count = |what: &str| text.matches(&format!("{what} __cudarun_check_")).count();
    (count("call"), count(".func"))
}

#[test]
fn accesses_of_a_kind_share_a_function() {
    assert_eq!(called(&text(3, 2, Some(0))), (5, 2));
    assert_eq!(called(&text(3, 0, Some(0))), (3, 1));
}

#[test]
fn only_functions_with_many_checks_call_them() {
    assert_eq!(called(&text(3, 2, Some(5))), (0, 0));
    assert_eq!(called(&text(3, 2, Some(4))), (5, 2));
    assert_eq!(called(&text(MOST_INLINED - 1, 1, None)), (0, 0));
    let (calls, functions) = called(&text(MOST_INLINED, 1, None));
    assert_eq!((calls, functions), (MOST_INLINED as usize + 1, 2));
}
