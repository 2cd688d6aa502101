// Package queues holds what a process knows of queues with settings, and admits their runs.
//
//   - [RowCache] has the rows of all queues. Starts, claims and admissions read them here.
//   - [DepthCache] knows how many runs the process may still start in a queue whose depth is bounded.
//   - [Admitter] decides, for one worker, when the store decides which runs of a queue may begin.
//
// Which runs of these queues a worker claims is decided in package engine.
package queues
