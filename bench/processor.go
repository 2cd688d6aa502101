package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of the times in /proc/PID/stat on Linux.
const clockTick = 10 * time.Millisecond

// processorTime returns the processor time that this process has used, or zero where /proc does not tell it.
func processorTime() time.Duration { return timesOf("self", 2) }

// serverTime returns the processor time of all backends of the PostgreSQL server that have ended: the time of the
// server's main process and of its children. It returns zero for SQLite, whose work is done by the processes that use it.
func (s *server) serverTime(ctx context.Context) (time.Duration, error) {
	if s.pg == nil {
		return 0, nil
	}
	var backend int
	if err := s.admin.QueryRow(ctx, statement("backend.postgres.sql")).Scan(&backend); err != nil {
		return 0, err
	}
	fields := statOf(strconv.Itoa(backend))
	if len(fields) < 2 {
		return 0, nil
	}
	return timesOf(fields[1], 4), nil
}

// timesOf returns the sum of the first times of a process: user, system, and those of its ended children.
func timesOf(process string, times int) (sum time.Duration) {
	const first = 11 // after the state, which is the first
	fields := statOf(process)
	for i := range times {
		if first+i >= len(fields) {
			return 0
		}
		var ticks int64
		if _, err := fmt.Sscan(fields[first+i], &ticks); err != nil {
			return 0
		}
		sum += time.Duration(ticks) * clockTick
	}
	return sum
}

// statOf returns the fields of /proc/PID/stat after the name, which may contain spaces: the state, the parent, and so on.
func statOf(process string) []string {
	text, err := os.ReadFile("/proc/" + process + "/stat")
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}
