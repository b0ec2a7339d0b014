//! Barriers of the whole grid.

/// The forms in which nvcc inlines `grid.sync()`.
#[test]
fn barriers_of_the_grid() {
    let text = |name: &str| {
        let path = format!(
            "{}/../../tests/race/gpu/{name}.ptx",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(&path).expect(&path);
        text.replace("${revision}", "synced")
    };
    let found = |text: &str| {
        let (module, wrong) = ptx::parse(text);
        assert!(wrong.is_empty(), "{wrong:?}");
        let bodies = module.functions().filter_map(|of| of.body.as_ref());
        bodies
            .map(|body| rewrite::grid::barriers(body).len())
            .sum::<usize>()
    };
    let [skips, leads] = ["grid_sync", "grid_sync_leads"].map(text);
    assert_eq!([found(&skips), found(&leads)], [1, 1]);
    // Other threads than the first take part.
    let others = [
        leads.replace("setp.eq.s32 %leader", "setp.ne.s32 %leader"),
        leads.replace("@%leader", "@!%leader"),
        leads.replace("bra.uni joined", "bra.uni spin"),
        skips.replace("setp.ne.s32 %others", "setp.eq.s32 %others"),
    ];
    for text in others {
        assert_eq!(found(&text), 0, "{text}");
    }
    // Said the other way around.
    let inverted = leads.replace("@%leader", "@!%leader");
    let inverted = inverted.replace("setp.eq.s32 %leader", "setp.ne.s32 %leader");
    assert_eq!(found(&inverted), 1);
}
