#pragma once

/// All of holdfast. See docs/guarantees.md for what it promises.

#include <holdfast/client.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/error.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/info.hpp>
#include <holdfast/keyed_executor.hpp>
#include <holdfast/latch.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/multi_lock.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/owner.hpp>
#include <holdfast/quorum.hpp>
#include <holdfast/recursive_mutex.hpp>
#include <holdfast/segmented_stock.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
#include <holdfast/striped_mutex.hpp>
#include <holdfast/token.hpp>
#include <holdfast/version.hpp>
