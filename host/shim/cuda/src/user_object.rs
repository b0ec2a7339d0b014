//! User objects: what graphs keep alive, and what is called when nobody needs it any more.

use std::collections::BTreeMap;
use std::ffi::{c_uint, c_void};

use driver::sys::{CUgraph_st, CUhostFn, CUresult, CUuserObject, CUuserObject_st};

use crate::Answer;
use crate::pointer::Ptr;
use crate::state::{State, with};
use crate::table::set;
use crate::work::Call;

/// An object of the program.
#[derive(Debug)]
pub(crate) struct UserObject {
    destroy: Call,
    references: u64,
}

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`, which has to be given.
const NO_SYNC: c_uint = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the caller's references become the graph's.
const MOVE: c_uint = 1;

/// References that a graph holds, by object.
pub(crate) type Held = BTreeMap<u64, u64>;

impl State {
    /// Takes references; the objects must be there.
    pub(crate) fn hold(&mut self, held: &Held) -> Answer {
        for (&object, &count) in held {
            self.objects.get_mut(object)?.references += count;
        }
        Ok(())
    }

    /// Gives references back; the destructors of what nobody needs are called by [`settle`].
    pub(crate) fn let_go(&mut self, held: &Held) -> Answer {
        for (&object, &count) in held {
            let found = self.objects.get_mut(object)?;
            let left = found.references.checked_sub(count);
            found.references = left.ok_or(CUresult::INVALID_VALUE)?;
            if found.references == 0 {
                let gone = self.objects.remove(object)?;
                self.dropped.push(gone.destroy);
            }
        }
        Ok(())
    }
}

/// Calls the destructors that are due, without the lock.
pub(crate) fn settle() -> Answer {
    for call in with(|state| Ok(std::mem::take(&mut state.dropped)))? {
        call.run();
    }
    Ok(())
}

pub(crate) fn cuUserObjectCreate(
    out: Ptr<CUuserObject>,
    object: Ptr<c_void>,
    destroy: CUhostFn,
    references: c_uint,
    flags: c_uint,
) -> Answer {
    let destroy = destroy.ok_or(CUresult::INVALID_VALUE)?;
    if references == 0 || flags != NO_SYNC || out.is_null() {
        return Err(CUresult::INVALID_VALUE);
    }
    let made = UserObject {
        destroy: Call::Plain(destroy, object.address()),
        references: u64::from(references),
    };
    set(out, with(|state| Ok(state.objects.insert(made)))?)
}

pub(crate) fn cuUserObjectRetain(object: Ptr<CUuserObject_st>, count: c_uint) -> Answer {
    with(|state| state.hold(&Held::from([(object.address(), u64::from(count))])))
}

pub(crate) fn cuUserObjectRelease(object: Ptr<CUuserObject_st>, count: c_uint) -> Answer {
    with(|state| state.let_go(&Held::from([(object.address(), u64::from(count))])))?;
    settle()
}

pub(crate) fn cuGraphRetainUserObject(
    graph: Ptr<CUgraph_st>,
    object: Ptr<CUuserObject_st>,
    count: c_uint,
    flags: c_uint,
) -> Answer {
    if flags & !MOVE != 0 || count == 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    let (object, count) = (object.address(), u64::from(count));
    with(|state| {
        let there = state.objects.get(object)?.references;
        state.graphs.get(graph.address())?;
        match flags & MOVE != 0 {
            true if there < count => return Err(CUresult::INVALID_VALUE),
            true => {}
            false => state.hold(&Held::from([(object, count)]))?,
        }
        let held = &mut state.graphs.get_mut(graph.address())?.objects;
        *held.entry(object).or_default() += count;
        Ok(())
    })
}

pub(crate) fn cuGraphReleaseUserObject(
    graph: Ptr<CUgraph_st>,
    object: Ptr<CUuserObject_st>,
    count: c_uint,
) -> Answer {
    let (object, count) = (object.address(), u64::from(count));
    with(|state| {
        let held = &mut state.graphs.get_mut(graph.address())?.objects;
        let has = held.get_mut(&object).ok_or(CUresult::INVALID_VALUE)?;
        *has = has.checked_sub(count).ok_or(CUresult::INVALID_VALUE)?;
        if *has == 0 {
            held.remove(&object);
        }
        state.let_go(&Held::from([(object, count)]))
    })?;
    settle()
}
