package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// showProgress shows on a terminal how far it is, until stop is called.
// Elsewhere it stays quiet.
func showProgress(w io.Writer, line func() string) (stop func()) {
	f, ok := w.(*os.File)
	if !ok {
		return func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	quit, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			fmt.Fprintf(f, "\r%s\x1b[K", line())
			select {
			case <-quit:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case <-tick.C:
			}
		}
	}()
	return func() { close(quit); <-gone }
}
