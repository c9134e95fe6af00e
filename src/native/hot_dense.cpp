namespace hushsum::HUSHSUM_CLONE {}
