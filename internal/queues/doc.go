// Package queues holds what a process knows of queues with settings.
//
//   - [RowCache] has the rows of all queues. Starts, claims and admissions read them here.
//   - [DepthCache] knows how many runs the process may still start in a queue whose depth is bounded.
package queues
