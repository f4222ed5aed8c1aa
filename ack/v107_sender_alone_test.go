package ack

import "testing"

// An id that serves again is one of the latest: a message may have had it since, and a
// driver ends at that (quirk D1-4).
func TestSenderAloneOfLate(t *testing.T) {
	senderTests(t, func(t *testing.T, cfg SenderConfig) {
		cfg.Window, cfg.Span = 8, 8
		for _, between := range []int{1<<15 - 1, 1 << 15, 1 << 16, 1<<16 + 1} {
			s := newSenderTest(t, cfg)
			s.alone(1)
			for range between - 9 {
				q := s.s.Track(s.now, 100)
				if _, ok := s.s.AppendAcked(nil, s.now, Range{Start: q, Count: 1}); !ok {
					t.Fatal("not acknowledged")
				}
			}
			for range 8 {
				s.s.Track(s.now, 100)
			}
			q, ok := s.s.Alone(s.now)
			if want := between < 1<<15; ok != want || ok && q != s.id(1) {
				t.Errorf("%d ids later: id %d, %v", between, q, ok)
			}
		}
	})
}
