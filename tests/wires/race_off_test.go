//go:build !race

package wires

const raceDetector = false
