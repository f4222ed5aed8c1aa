package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/rdmap/ddp"
)

// untilCut calls touches, which touches the memory of --file on this goroutine. Where the file
// was cut there is nothing under the memory any more, and to touch it there would end the
// program with a trace; it is an error here.
func (o *serveOptions) untilCut(size uint64, touches func() error) (err error) {
	if o.file == "" {
		return touches()
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			onlyFault(p)
			err = o.cut(size)
		}
	}()
	return touches()
}

// onlyFault panics again unless a panic is the system's, over an address.
func onlyFault(p any) {
	if fault, ok := p.(interface{ Addr() uintptr }); !ok || fault.Addr() == 0 {
		panic(p) // our own mistake
	}
}

// servedFile is the file of the memory, whose cut is found before the endpoint touches what is
// not there: the endpoint is whole then, and tells its peers that it ends. What is cut between
// the look and the touch is found by [serveOptions.drive], and then no peer is told. Its methods
// run on the goroutine that receives, where a fault is a panic. Of a nil one they find nothing.
type servedFile struct {
	cut  chan struct{} // closed when that is known
	once sync.Once
}

func newServedFile() *servedFile { return &servedFile{cut: make(chan struct{})} }

// has looks whether the file still has these bytes, which are small or those of one frame.
func (f *servedFile) has(data, word []byte) (err error) {
	if f == nil {
		return nil
	}
	select {
	case <-f.cut:
		return errCut
	default:
	}
	defer f.caught(&err)
	ddp.Probe(data)
	ddp.Probe(word)
	return nil
}

// touch calls touches, which touches the file.
func (f *servedFile) touch(touches func()) {
	if f == nil {
		touches()
		return
	}
	var err error
	defer f.caught(&err)
	touches()
}

// caught takes the panic of a fault, and keeps that the file was cut.
func (f *servedFile) caught(err *error) {
	if p := recover(); p != nil {
		onlyFault(p)
		*err = errCut
		f.once.Do(func() { close(f.cut) })
	}
}

// errCut says that the memory of --file is not all there any more.
var errCut = errors.New("the file must keep its size while it is served")

func (o *serveOptions) cut(size uint64) error {
	if info, err := os.Stat(o.file); err == nil && info.Size() < int64(size) {
		return fmt.Errorf("--file %s: was cut from %s to %d: %w", o.file, count(size, "byte"), info.Size(), errCut)
	}
	return fmt.Errorf("--file %s: the system cannot get at all of it any more: was it cut, or is its disk broken or full? %w", o.file, errCut)
}

// drive does the work of an endpoint whose memory is that of --file, until it is closed: a
// fault on a goroutine of the endpoint's own would end the program.
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
