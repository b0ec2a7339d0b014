//! What stands at the beginning of a checked function: the registers that its checks read, for who the thread is and for
//! the constants of the launch.

use std::mem::offset_of;

use device::{Entry, Fast, FastShared, LAUNCH_PARAM};
use shadow::layout::LaunchBlock;

use crate::call::{LAUNCH, ME, Value, call};
use crate::calls::STATE_PARAM;

/// What a function needs of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prologue {
    /// The function is a kernel.
    pub(crate) kernel: bool,
    /// The thread's identity is in memory too, where functions that are called read it.
    pub(crate) state: bool,
    /// The function reads the cells of its CTA's shared memory.
    pub(crate) slot: bool,
    /// Only some granules are checked.
    pub(crate) sample: bool,
}

impl Prologue {
    /// Declares the registers and fills them.
    pub(crate) fn text(self) -> String {
        let mut text = self.declarations();
        text.push_str(&format!("ld.param.u64 %crc_launch, [{LAUNCH_PARAM}];\n"));
        text.push_str(&self.constants());
        self.identify(&mut text);
        text
    }

    /// Declares the registers.
    pub(crate) fn declarations(self) -> String {
        let mut text = String::from("\n");
        text.push_str(&Fast::declarations());
        if self.slot {
            text.push_str(&FastShared::declarations());
            text.push_str(".reg .b64 %crc_slot, %crc_slot_mask;\n");
        }
        text.push_str(
            ".reg .pred %crc_global, %crc_settled, %crc_guard;\n\
             .reg .b32 %crc_tag_from, %crc_tag_shift, %crc_flat, %crc_a, %crc_b, %crc_c;\n\
             .reg .b64 %crc_launch, %crc_me, %crc_cells, %crc_base, %crc_bytes, %crc_cell_mask, %crc_address, %crc_next, %crc_new;\n\
             .reg .b64 %crc_compared, %crc_by_warps;\n",
        );
        if self.sample {
            text.push_str(".reg .b32 %crc_word;\n.reg .b64 %crc_sample_mask;\n");
        }
        if self.state {
            text.push_str(".reg .b64 %crc_state;\n");
        }
        text
    }

    /// Reads or computes who the thread is, and where its CTA's shared memory has its cells.
    fn identify(self, text: &mut String) {
        // Works in registers that checks fill before they read them.
        let entry = Entry {
            launch: LAUNCH.text,
            flat: "%crc_flat",
            me: ME.text,
            cta: "%crc_address",
            scratch: ["%crc_next", "%crc_new"],
            words: ["%crc_a", "%crc_b", "%crc_c"],
            predicate: "%crc_settled",
        };
        if self.kernel {
            text.push_str(&entry.identity());
            if self.state {
                text.push_str(
                    ".local .align 8 .b8 __cudarun_me[8];\nmov.u64 %crc_state, __cudarun_me;\n\
                     st.local.u64 [%crc_state], %crc_me;\n",
                );
            }
        } else {
            text.push_str(&format!(
                "ld.param.u64 %crc_state, [{STATE_PARAM}];\nld.local.u64 %crc_me, [%crc_state];\n"
            ));
        }
        match (self.slot, self.kernel) {
            (false, _) => {}
            (true, true) => text.push_str(&entry.slot("%crc_slot", "%crc_slot_mask")),
            (true, false) => {
                let block = size_of::<LaunchBlock>();
                let mask = block + offset_of!(LaunchBlock, cell_mask);
                text.push_str(&format!(
                    "ld.global.u64 %crc_slot_mask, [%crc_launch+{mask}];\nadd.s64 %crc_slot, %crc_launch, {block};\n"
                ));
                let slot = Value::new("b64", "%crc_slot");
                text.push_str(&call("slot", Some(slot), &[slot]));
            }
        }
    }

    /// Reads what is the same for all threads of the launch.
    pub(crate) fn constants(self) -> String {
        let mut text = String::new();
        let mut read = |registers: &str, ty: &str, offset: usize| {
            text.push_str(&format!(
                "ld.global.{ty} {registers}, [%crc_launch+{offset}];\n"
            ));
        };
        let pair = "v2.u64";
        read(
            "{%crc_cells, %crc_cell_mask}",
            pair,
            offset_of!(LaunchBlock, cells),
        );
        read(
            "{%crc_base, %crc_bytes}",
            pair,
            offset_of!(LaunchBlock, window_base),
        );
        read(
            "{%crc_compared, %crc_by_warps}",
            pair,
            offset_of!(LaunchBlock, compared),
        );
        // The last of them is not needed.
        read(
            "{%crc_tag_from, %crc_tag_shift, %crc_flat, %crc_a}",
            "v4.u32",
            offset_of!(LaunchBlock, tag_from),
        );
        if self.sample {
            read(
                "%crc_sample_mask",
                "u64",
                offset_of!(LaunchBlock, sample_mask),
            );
        }
        text
    }
}
