package telemetry

// Bucket boundaries of the histograms. The SDK's default boundaries, 0, 5, 10 up to 10,000, suit
// milliseconds; with seconds, they would put all values below five into one bucket.
var (
	// A run takes milliseconds to months.
	runSeconds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600, 30 * 24 * 3600}
	// A due run begins within a millisecond, or, after an outage, minutes later.
	latencySeconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	// An attempt of a step is anything from a short call to a batch job of several hours.
	stepSeconds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 6 * 3600}
	// A flush is one commit. It takes a tenth of a millisecond on a fast disk, and seconds if it waits for a standby.
	flushSeconds = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}
	flushItems   = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	flushBytes   = []float64{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20}
)
