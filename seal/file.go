package seal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// ReadKeys reads the keys of an endpoint. A line has the key for all peers, or the id of a peer and the key for that one; empty lines, and those
// that begin with #, say nothing. The file must be readable by its owner alone.
func ReadKeys(path string) (*Ring, error) {
	r, err := readFile(path)
	if err != nil {
		var of *fs.PathError
		if errors.As(err, &of) {
			err = of.Err // the path is said already
		}
		return nil, &fileError{path, err}
	}
	return r, nil
}

// fileError is an ErrKey of a file.
type fileError struct {
	path string
	err  error
}

func (e *fileError) Error() string   { return fmt.Sprintf("key file %s: %v", e.path, e.err) }
func (e *fileError) Unwrap() []error { return []error{ErrKey, e.err} }

func readFile(path string) (*Ring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read or write it (%v): chmod 600 %s, and take a new key if others may have read it", mode.Perm(), path)
	}
	return readRing(f)
}

func readRing(from io.Reader) (*Ring, error) {
	r := &Ring{Own: make(map[uint16]*Key)}
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Fields(text)
		if len(fields) > 2 {
			return nil, fmt.Errorf("line %d has %d words, need a key, or an id and a key", n, len(fields))
		}
		k, err := ParseKey(fields[len(fields)-1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, errKeyText)
		}
		switch {
		case len(fields) == 1 && r.All != nil:
			return nil, fmt.Errorf("line %d has a second key for all peers: begin it with the id of the peer that it is for", n)
		case len(fields) == 1:
			r.All = &k
		default:
			id, err := strconv.ParseUint(fields[0], 10, 16)
			switch {
			case err != nil || id == 0:
				return nil, fmt.Errorf("line %d begins with none of the ids of peers, 1 to 65535", n) // it may be a key
			case r.Own[uint16(id)] != nil:
				return nil, fmt.Errorf("line %d has a second key for peer %d", n, id)
			}
			r.Own[uint16(id)] = &k
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, err
	case r.All == nil && len(r.Own) == 0:
		return nil, errors.New("there is no key in it")
	}
	return r, nil
}
