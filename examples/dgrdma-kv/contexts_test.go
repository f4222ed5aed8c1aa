package main

import (
	"context"
	"testing"
)

// TestEndedContexts: callers that gave up before their turn cost a client nothing.
func TestEndedContexts(t *testing.T) {
	c, err := Dial(t.Context(), startServer(t, "-port", "0", "-entries", "4"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ended, stop := context.WithCancel(t.Context())
	stop()
	for range 128 {
		c.Put(ended, "k", []byte("v"))
	}
	if err := c.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Error(err)
	}
}
