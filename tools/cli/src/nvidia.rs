//! NVIDIA's kernel driver on this machine.
/// The version of the NVIDIA driver, if one is loaded.
pub(crate) fn driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let words = text.lines().next()?.split_whitespace();
    let number = |word: &&str| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit());
    Some(
        words
            .into_iter()
            .find(number)
            .unwrap_or("of unknown version")
            .to_owned(),
    )
}
