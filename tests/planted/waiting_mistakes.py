"""Mistakes in code that waits and wakes, which the model checker finds (tests/model)."""

from mistake import mistake, table

TABLE = table("checker.hpp", 'model::planted("NAME")', [
    # Threads of this process.
    mistake(
        "src/threading/parking.hpp",
        "        word_.exchange(nothing, std::memory_order_acq_rel);\n",
        '        if (model::planted("a wake-up is taken by a plain store")) {\n'
        "            word_.store(nothing, std::memory_order_release);\n"
        "            return;\n"
        "        }\n"
        "        word_.exchange(nothing, std::memory_order_acq_rel);\n",
        "a wake-up is taken by a plain store"),
    mistake(
        "src/threading/parking.hpp",
        "        seen = asleep;\n",
        "        seen = asleep;\n"
        '        if (model::planted("awake by a plain store")) {\n'
        "            word_.store(nothing);\n"
        "            return nothing;\n"
        "        }\n",
        "awake by a plain store"),
    mistake(
        "src/threading/parking.hpp",
        "        if (!word_.compare_exchange_strong(seen, at_descriptor,",
        '        if (model::planted("at the descriptor without a look")) {\n'
        "            word_.store(at_descriptor, std::memory_order_release);\n"
        "        } else if (!word_.compare_exchange_strong(seen, at_descriptor,",
        "at the descriptor without a look"),
    mistake(
        "src/threading/parking.hpp",
        "if (before == asleep) {",
        'if (before == asleep && !model::planted("a sleeper is not woken")) {',
        "a sleeper is not woken"),
    mistake(
        "src/threading/parking.hpp",
        "if (before == at_descriptor) {",
        'if (before == at_descriptor && !model::planted("the bell is not rung")) {',
        "the bell is not rung"),
    mistake(
        "src/runtime/callback_thread.cpp",
        "    state->changed.notify_one();\n",
        '    if (!model::planted("a callback is queued in silence")) {\n'
        "        state->changed.notify_one();\n"
        "    }\n",
        "a callback is queued in silence"),
    mistake(
        "src/runtime/timer.cpp",
        "        threading::timerfd_settime(descriptor_, 0, &at_once, nullptr);\n"
        "        thread_.join();\n",
        '        if (!model::planted("the end rings no bell")) {\n'
        "            threading::timerfd_settime(descriptor_, 0, &at_once, nullptr);\n"
        "        }\n"
        "        thread_.join();\n",
        "the end rings no bell"),
    mistake(
        "src/api/lease.cpp",
        "if (source->stop_requested() || loss() == errc{}) {",
        'if (source->stop_requested() || model::planted("a loss is not looked for") ||\n'
        "        loss() == errc{}) {",
        "a loss is not looked for"),

    # Processes of this host.
    mistake(
        "engines/local/wake_map.cpp",
        "        key.compare_exchange_strong(hidden, dead_key);\n",
        '        if (model::planted("a hidden entry is put back by a plain store")) {\n'
        "            key.store(dead_key);\n"
        "        } else {\n"
        "            key.compare_exchange_strong(hidden, dead_key);\n"
        "        }\n",
        "a hidden entry is put back by a plain store"),
    mistake(
        "engines/local/wake_map.cpp",
        "    map_->word.fetch_add(1);\n",
        '    if (!model::planted("sleepers are woken for the same word")) {\n'
        "        map_->word.fetch_add(1);\n"
        "    }\n",
        "sleepers are woken for the same word"),

    # Connections to Redis.
    mistake(
        "engines/redis/net/link.cpp",
        "    reading_ = reader::background;\n"
        "    owner_.wake_background();\n",
        "    reading_ = reader::background;\n"
        '    if (!model::planted("the background is not told to read")) {\n'
        "        owner_.wake_background();\n"
        "    }\n",
        "the background is not told to read"),
    mistake(
        "engines/redis/net/link.cpp",
        "    if (request* const next = requests_.next_reader(); next != nullptr) {\n",
        '    if (model::planted("nobody reads on")) {\n'
        "        return;\n"
        "    }\n"
        "    if (request* const next = requests_.next_reader(); next != nullptr) {\n",
        "nobody reads on"),
    mistake(
        "engines/redis/net/subscriber.cpp",
        "if (urgent || looks_late) {",
        'if ((urgent || looks_late) && !model::planted("an attendant leaves in silence")) {',
        "an attendant leaves in silence"),
])
