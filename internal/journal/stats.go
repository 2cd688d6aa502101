package journal

import (
	"sync/atomic"
	"time"
)

// Stats counts what a journal has done since New, and how many entries are pending now.
type Stats struct {
	Flushes              int64         // committed flushes
	WrittenRows          int64         // items in the committed flushes
	WrittenBytes         int64         // approximate bytes in the committed flushes, with the overhead of rows
	LargestFlushRows     int64         // items in the largest committed flush
	TotalFlushTime       time.Duration // sum of the durations of the committed flushes; two may overlap
	AverageFlushTime     time.Duration // moving average of the duration of a flush, over about the last 16
	FailedFlushes        int64         // failed flushes; most of them were split and tried again
	FlushRetries         int64         // retries of flushes while the database was unavailable
	SeparateTransactions int64         // transactions by SeparateTxWriter
	PendingEntries       int           // entries that wait for a flush to begin
}

// journalCounters holds the figures of Stats. Only writers update it, once a flush, so that callers which
// append do not contend for it.
type journalCounters struct {
	flushes, items, bytes, largestFlush, totalTime, averageTime, failedFlushes, retries, separateTransactions atomic.Int64
}

// averagedFlushes is the approximate number of flushes that Stats.AverageFlushTime averages.
const averagedFlushes = 16

func (c *journalCounters) countFlush(items, bytes int, took time.Duration, retries int, err error) {
	c.retries.Add(int64(retries))
	if err != nil {
		c.failedFlushes.Add(1)
		return
	}
	first := c.flushes.Add(1) == 1
	c.items.Add(int64(items))
	c.bytes.Add(int64(bytes))
	c.totalTime.Add(int64(took))
	for {
		largest := c.largestFlush.Load()
		if int64(items) <= largest || c.largestFlush.CompareAndSwap(largest, int64(items)) {
			break
		}
	}
	for {
		recent := c.averageTime.Load()
		next := recent + (int64(took)-recent)/averagedFlushes
		if first {
			next = int64(took)
		}
		if c.averageTime.CompareAndSwap(recent, next) {
			return
		}
	}
}

// Stats returns the current counts of the journal. Stats reads the counts one after the other, so they may differ by one flush if a
// flush ends meanwhile.
func (j *Journal) Stats() Stats {
	c := &j.counters
	return Stats{
		Flushes: c.flushes.Load(), WrittenRows: c.items.Load(), WrittenBytes: c.bytes.Load(), LargestFlushRows: c.largestFlush.Load(),
		TotalFlushTime: time.Duration(c.totalTime.Load()), AverageFlushTime: time.Duration(c.averageTime.Load()),
		FailedFlushes: c.failedFlushes.Load(), FlushRetries: c.retries.Load(), SeparateTransactions: c.separateTransactions.Load(), PendingEntries: j.PendingEntries(),
	}
}
