package journal

import (
	"sync/atomic"
	"time"
)

// Stats is what a journal has done since New, and what waits in it now.
type Stats struct {
	Flushes int64         // transactions that committed
	Items   int64         // that they wrote
	Bytes   int64         // about, with a row's overhead
	Largest int64         // items of the largest of them
	Took    time.Duration // of them all together; two may be under way at once
	Recent  time.Duration // of one, lately: an average in which the last sixteen or so count
	Refused int64         // flushes that the database would not take; most were split and tried again
	Replays int64         // of flushes, while the database was away
	Alone   int64         // transactions of one caller's items, after those were rejected or held up
	Waiting int           // entries that wait for a flush to begin
}

// counters are added to by the writers alone, once a flush. Nobody who appends meets
// them.
type counters struct {
	flushes, items, bytes, largest, took, recent, refused, replays, alone atomic.Int64
}

// recentOf is how many flushes weigh in Stats.Recent, roughly.
const recentOf = 16

func (c *counters) flushed(items, bytes int, took time.Duration, replays int, err error) {
	c.replays.Add(int64(replays))
	if err != nil {
		c.refused.Add(1)
		return
	}
	first := c.flushes.Add(1) == 1
	c.items.Add(int64(items))
	c.bytes.Add(int64(bytes))
	c.took.Add(int64(took))
	for {
		largest := c.largest.Load()
		if int64(items) <= largest || c.largest.CompareAndSwap(largest, int64(items)) {
			break
		}
	}
	for {
		recent := c.recent.Load()
		next := recent + (int64(took)-recent)/recentOf
		if first {
			next = int64(took)
		}
		if c.recent.CompareAndSwap(recent, next) {
			return
		}
	}
}

// Stats answers the figures as they are now. They are read one after the other, so
// while flushes end they may be apart by one.
func (j *Journal) Stats() Stats {
	c := &j.counters
	return Stats{
		Flushes: c.flushes.Load(), Items: c.items.Load(), Bytes: c.bytes.Load(), Largest: c.largest.Load(),
		Took: time.Duration(c.took.Load()), Recent: time.Duration(c.recent.Load()),
		Refused: c.refused.Load(), Replays: c.replays.Load(), Alone: c.alone.Load(), Waiting: j.Depth(),
	}
}
