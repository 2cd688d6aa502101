// Package doctor finds what is wrong with the workers, runs, queues and schedules of a database, and says how to fix it. The command durable doctor
// and the dashboard show its findings.
package doctor

// Severity tells how bad a finding is.
type Severity string

// The severities.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning" // it may be intended, or is not urgent
	Problem Severity = "problem" // runs do not go on, or may be lost
)

// Finding is what the doctor has to say about one thing.
type Finding struct {
	Level   Severity
	Check   string
	Finding string
	Fix     string // what to do, in words; empty if nothing is wrong
}
