// Package faults breaks things on purpose, with real processes, real kills and real
// servers, and looks whether the guarantees hold. It has tests only. TestRowNN is one
// kind of fault; what it is stands above it.
//
// A worker is this test binary executed again (see job): it opens the store it is
// given, plays one scenario, and reports by lines on its standard output. What steps
// did to the world is in a ledger file outside of every database (see ledger). Stores
// can be wrapped so that the process dies, or a result is changed, at a chosen call
// (see faulty).
//
// Every test does its fault, prints one line of figures, and fails if the fault did
// not occur. Nothing sleeps: tests wait for lines, exits and database states, through
// one helper (await).
package faults
