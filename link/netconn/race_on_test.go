//go:build race

package netconn

const raced = true
