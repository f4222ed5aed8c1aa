package link

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestCloseWhereNothingIsTaken checks that Close of a link and of a producer ends though the peer is
// there, acknowledges, and gives no buffer back; that a link is over then; and that a peer that
// takes a message from time to time is waited for (F13).
func TestCloseWhereNothingIsTaken(t *testing.T) {
	for _, slow := range []time.Duration{0, closeWait / 2} {
		for name, end := range map[string]func(l *Link) error{
			"link":     func(l *Link) error { return l.Close() },
			"producer": func(l *Link) error { return l.Out.Close() },
		} {
			t.Run(fmt.Sprintf("%s/%v", name, slow), func(t *testing.T) {
				withStranger(t, &Options{Directions: Send}, func(t *testing.T, h *Host, made <-chan *Link, s *stranger) {
					yes := s.dial(1, "port", toDialer, half{}, buffers(2, 64))
					l := <-made
					for range 2 {
						if err := l.Out.Send(soon(t), 0, []byte("all that fits")); err != nil {
							t.Fatal(err)
						}
					}
					// Another goroutine waits for a buffer first.
					sent := make(chan error, 1)
					go func() { sent <- l.Out.Send(t.Context(), 0, nil) }()
					s.wait(time.Millisecond)
					if slow > 0 {
						go func() {
							for k := range uint32(2) {
								time.Sleep(slow)
								s.frame(s.word(yes.back.Credit, k+1))
							}
						}()
					}
					began := time.Now()
					ended := make(chan error, 1)
					go func() { ended <- end(l) }()
					var err error
					for waiting := true; waiting; {
						select {
						case err = <-ended:
							waiting = false
						case <-time.After(time.Second): // so that the host knows that its peer is there
							s.hello(true)
							if time.Since(began) > time.Hour {
								t.Fatal("it waits for ever")
							}
						}
					}
					var e *Error
					switch {
					case slow > 0 && err == nil:
					case slow == 0 && errors.Is(err, ErrNoAnswer) && errors.As(err, &e) && e.Timeout():
					default:
						t.Errorf("after %v: %v", time.Since(began), err)
					}
					l.Abort(soon(t), "")
					<-sent
					s.wait(time.Second)
					if st := h.Stats(); st.Free != st.Memory || st.Sending != 0 {
						t.Errorf("%d bytes of %d are free, %d kept for what was sent", st.Free, st.Memory, st.Sending)
					}
				})
			})
		}
	}
}
