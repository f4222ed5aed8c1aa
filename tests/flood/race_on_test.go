//go:build race

package flood

// slower is how much more a frame may cost under the race detector.
const slower = 20
