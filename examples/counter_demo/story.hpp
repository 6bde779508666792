#pragma once

namespace demo {

/// Each part prints what happens and says whether it went as it should.
[[nodiscard]] bool without_a_lock();
[[nodiscard]] bool with_a_lock();
[[nodiscard]] bool a_holder_that_is_stopped();

}  // namespace demo
