//go:build !race

package netconn

const raced = false
