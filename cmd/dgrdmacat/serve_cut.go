package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/dgrdma/dgrdma/dgrdma"
)

// untilCut calls touches, which touches the memory of --file on this goroutine. Where the file
// was cut there is nothing under the memory any more, and who touches it there would end
// the program with a trace; it is an error here.
func (o *serveOptions) untilCut(size uint64, touches func() error) (err error) {
	if o.file == "" {
		return touches()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if fault, ok := p.(interface{ Addr() uintptr }); !ok || fault.Addr() == 0 {
				panic(p) // our own mistake
			}
			err = o.cut(size)
		}
	}()
	return touches()
}

// errCut says that the memory of --file is not all there any more.
var errCut = errors.New("the file must keep its size while it is served")

func (o *serveOptions) cut(size uint64) error {
	if info, err := os.Stat(o.file); err == nil && info.Size() < int64(size) {
		return fmt.Errorf("--file %s: was cut from %s to %d: %w", o.file, count(size, "byte"), info.Size(), errCut)
	}
	return fmt.Errorf("--file %s: the system cannot get at all of it any more: was it cut, or is its disk broken or full? %w", o.file, errCut)
}

// drive does the work of an endpoint whose memory is that of --file, until it is closed: what
// its own goroutines find cut ends the program.
func (o *serveOptions) drive(e *dgrdma.Endpoint, size uint64) error {
	return o.untilCut(size, func() error {
		for {
			if _, err := e.Progress(dgrdma.Forever); errors.Is(err, dgrdma.ErrClosed) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
}
