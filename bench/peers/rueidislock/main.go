// rueidislock, as its README shows it for one server of version 7.0.5 or newer. See ../README.md for the protocol.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"golang.org/x/sys/unix"
)

func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

func number(order map[string]string, key string) int64 {
	value, err := strconv.ParseInt(order[key], 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}

func run(locker rueidislock.Locker, order map[string]string) [][][4]int64 {
	tasks := int(number(order, "tasks"))
	most := number(order, "pairs")
	hold := time.Duration(number(order, "hold_us")) * time.Microsecond
	begin := now() + number(order, "warm_ms")*1_000_000
	end := begin + number(order, "ms")*1_000_000
	results := make([][][4]int64, tasks)
	var all sync.WaitGroup
	for task := range results {
		all.Add(1)
		go func() {
			defer all.Done()
			name := order["name"]
			if order["mode"] != "one" {
				name = fmt.Sprintf("%s:%d", name, task)
			}
			for taken := int64(0); most == 0 || taken < most; taken++ {
				asked := now()
				if asked >= end {
					return
				}
				_, cancel, err := locker.WithContext(context.Background(), name)
				if err != nil {
					fmt.Fprintln(os.Stderr, "lock:", err)
					return
				}
				got := now()
				if hold > 0 {
					time.Sleep(hold)
				}
				released := now()
				cancel()
				done := now()
				if begin <= asked && done <= end {
					results[task] = append(results[task], [4]int64{asked, got, released, done})
				}
			}
		}()
	}
	all.Wait()
	return results
}

func version(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}

func main() {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{"127.0.0.1:" + os.Args[1]}},
		KeyMajority:    1,
		NoLoopTracking: true,
	})
	if err != nil {
		panic(err)
	}
	defer locker.Close()
	fmt.Println("ready rueidislock", version("github.com/redis/rueidis"))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		order := map[string]string{}
		for _, word := range strings.Fields(lines.Text()) {
			key, value, _ := strings.Cut(word, "=")
			order[key] = value
		}
		results := run(locker, order)
		file, err := os.Create(order["out"])
		if err != nil {
			panic(err)
		}
		out := bufio.NewWriter(file)
		for task, pairs := range results {
			for _, p := range pairs {
				fmt.Fprintln(out, task, p[0], p[1], p[2], p[3])
			}
		}
		out.Flush()
		file.Close()
		fmt.Println("done")
	}
}
