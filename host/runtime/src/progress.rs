//! What is asked at every turn of a launch on the simulated device: whether it is to go on.

use driver::interrupts;
use simt::Progress;

/// False once a signal wants the process to end; for [`simt::Limits::go_on`], of whoever holds the
/// signals.
pub fn go_on(_: Progress) -> bool {
    interrupts::caught().is_none()
}
