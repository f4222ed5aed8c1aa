//go:build !race

package flood

const slower = 1
