//go:build race

package wires

// raceDetector makes everything many times slower.
const raceDetector = true
