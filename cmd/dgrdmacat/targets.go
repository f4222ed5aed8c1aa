package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"

	"github.com/dgrdma/dgrdma/link/stream"
)

// targets names the files that listen writes.
type targets struct {
	file     string
	numbered bool // each has its own
	force    bool

	mu     sync.Mutex
	latest int
}

// newTargets checks what can be checked before anybody sends.
func newTargets(o *listenOptions) (*targets, error) {
	t := &targets{file: o.file, force: o.force}
	if o.file == "" {
		return t, nil
	}
	info, err := os.Stat(o.file)
	special := err == nil && !info.Mode().IsRegular() && !info.IsDir()
	t.numbered = o.keep && !special
	if t.numbered {
		return t, stream.CheckFile(t.name(1), true)
	}
	return t, orForce(stream.CheckFile(t.file, t.force))
}

var numberPattern = regexp.MustCompile(`%(0[1-9])?d`)

// name returns the name of the nth file.
func (t *targets) name(n int) string {
	at := numberPattern.FindStringIndex(t.file)
	if at == nil {
		return t.file + "." + strconv.Itoa(n)
	}
	return t.file[:at[0]] + fmt.Sprintf(t.file[at[0]:at[1]], n) + t.file[at[1]:]
}

// next returns the name of the next file to be written.
func (t *targets) next() string {
	if !t.numbered {
		return t.file
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		t.latest++
		name := t.name(t.latest)
		if _, err := os.Lstat(name); err != nil || t.force {
			return name
		}
	}
}
