package rpc

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// TestSlots checks that calls which wait here get places in order, in turn with streams, and that no place is lost.
func TestSlots(t *testing.T) {
	s := slots{places: make(chan struct{}, 1)}
	calls := []*serverCall{{}, {}, {}, {}}
	if !s.take(calls[0]) {
		t.Fatal("there is no place")
	}
	for _, c := range calls[1:] {
		if s.take(c) {
			t.Fatal("there are two places")
		}
	}
	stream := make(chan bool)
	go func() {
		for range 2 {
			s.places <- struct{}{}
			stream <- true
		}
	}()
	// Which of both is first depends on whether the stream waits yet.
	streams, served := 0, 1
	for streams < 2 || served < len(calls) {
		if next := s.put(); next != nil {
			if next != calls[served] {
				t.Fatalf("the call after %d is another one", served)
			}
			served++
			continue
		}
		if streams == 2 {
			t.Fatalf("after %d streams and %d calls there is nothing", streams, served)
		}
		<-stream
		streams++
	}
	if s.put() != nil || len(s.places) != 0 {
		t.Error("a place is lost")
	}
}

// TestSlotsTakeTurns checks that streams and calls that wait here get every other place, as long as both wait.
func TestSlotsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slots{places: make(chan struct{}, 1)}
		for range 5 {
			s.take(&serverCall{})
		}
		streams := 0
		for range 4 {
			go func() {
				s.places <- struct{}{}
				streams++
			}()
		}
		synctest.Wait()
		for i := range 8 {
			before := streams
			next := s.put()
			synctest.Wait()
			if stream := streams > before; stream == (next != nil) || stream != (i%2 == 0) {
				t.Errorf("place %d: a stream has it: %v, a call has it: %v", i, stream, next != nil)
			}
		}
	})
}

// TestWaitingCallsTakeNoGoroutine checks that calls over RDMA which wait for a place take no goroutine, and are carried out.
func TestWaitingCallsTakeNoGoroutine(t *testing.T) {
	overRDMA(t, func(t *testing.T, so *ServerOptions, co *ClientOptions, transport string) {
		h := &service{entered: make(chan struct{}, 64), hold: make(chan struct{})}
		so.Calls = 1
		s, address := serveRDMA(t, h, so)
		b := dial(t, address, co).Bind(testProgram, None)
		if err := b.Call(t.Context(), 0, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		before := runtime.NumGoroutine()
		var all sync.WaitGroup
		const n = 60
		for range n {
			all.Go(func() {
				if err := b.Call(t.Context(), procAdd, num(1), nil, nil); err != nil {
					t.Error(err)
				}
			})
		}
		<-h.entered
		waitFor(t, "the others wait", func() bool {
			s.slots.mu.Lock()
			defer s.slots.mu.Unlock()
			return len(s.slots.waiting) == n-1
		})
		if more := runtime.NumGoroutine() - before - n; more > 15 {
			t.Errorf("%d calls that wait take %d goroutines", n-1, more)
		}
		close(h.hold)
		within(t, "the calls", all.Wait)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.sum != n {
			t.Errorf("%d calls were carried out", h.sum)
		}
	})
}
