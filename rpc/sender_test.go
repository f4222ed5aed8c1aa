package rpc

import (
	"sync"
	"testing"
)

// TestMessagesAreUsedAgain checks, under the race detector, that what writes messages does not look at one that was written: its call
// has returned, and is used for the next one.
func TestMessagesAreUsedAgain(t *testing.T) {
	_, address := serve(t, &service{}, nil)
	b := dial(t, address, nil).Bind(testProgram, None)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			args := data{b: make([]byte, copiedUpTo+1)} // the word before it is what ADD adds
			for range 2000 {
				if err := b.Call(t.Context(), procAdd, &args, nil, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}
