//! Of threads that count, only the one that has found the value comes behind the others.

use shadow::hb::{
    Access, Active, Atomics, Engine, FenceKind, FenceOrder, Location, MemoryOrder, OpKind, Scope,
    Shape, Warp,
};

const DATA: Location = Location::Global(128);
const COUNT: Location = Location::Global(64);

fn access(kind: OpKind, order: MemoryOrder) -> Access {
    Access {
        kind,
        order,
        bytes: 4,
        elements: 1,
        site: 7,
    }
}

struct Run {
    engine: Engine,
    order: FenceOrder,
}

impl Run {
    /// The only thread of a CTA accesses memory. Whether that races, and whether this run has ordered it.
    fn access(
        &mut self,
        cta: u64,
        kind: OpKind,
        order: MemoryOrder,
        location: Location,
    ) -> Option<bool> {
        let warp = Warp { cta, warp: 0 };
        let access = access(kind, order);
        let mut races = Vec::new();
        self.engine
            .access(warp, 1, &access, |_| location, |race| races.push(race));
        let mut race = races.pop();
        let ordered = race
            .as_mut()
            .map(|race| self.order.orders(&mut self.engine, race));
        self.order
            .access(Active { warp, lanes: 1 }, &access, |_| location);
        ordered
    }

    fn fence(&mut self, cta: u64) {
        let warp = Warp { cta, warp: 0 };
        let kind = self.order.fence(
            &self.engine,
            Active { warp, lanes: 1 },
            FenceKind::AcqRel,
            Scope::Gpu,
        );
        self.engine.fence(warp, 1, kind, Scope::Gpu);
    }

    fn count(&mut self, cta: u64) {
        self.order.count(&self.engine);
        self.engine.atomics(Atomics::Count);
        let found = self.access(cta, OpKind::Rmw, MemoryOrder::Relaxed(Scope::Gpu), COUNT);
        assert_eq!(found, None);
        self.engine.atomics(Atomics::Any);
    }
}

/// CTA 0 stores and counts; CTA 1 counts, executes a fence before or behind what shows that it has found the
/// value (or never does), and loads.
fn load(found: Option<bool>) -> Option<bool> {
    let mut run = Run {
        engine: Engine::new(Shape::new([2, 1, 1], 1)),
        order: FenceOrder::default(),
    };
    assert_eq!(run.access(0, OpKind::Store, MemoryOrder::Weak, DATA), None);
    run.fence(0);
    run.count(0);
    run.count(1);
    let warp = Warp { cta: 1, warp: 0 };
    match found {
        None => run.fence(1),
        Some(early) => {
            if early {
                run.fence(1);
            }
            run.engine.has_found(warp, 1, 8);
            run.engine.has_found(warp, 1, 7);
            if !early {
                run.fence(1);
            }
        }
    }
    run.access(1, OpKind::Load, MemoryOrder::Weak, DATA)
}

#[test]
fn who_has_found_the_value_comes_behind_the_others() {
    assert_eq!(load(Some(true)), None);
    assert_eq!(load(Some(false)), None);
}

#[test]
fn who_has_not_is_ordered_by_the_run_alone() {
    assert_eq!(load(None), Some(true));
}
