package seal

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// ReadKeys reads the keys of an endpoint. A line has the key for all peers, or the id of a peer and the key for that one; empty lines, and those
// that begin with #, say nothing. The file must be readable by its owner alone.
func ReadKeys(path string) (*Ring, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s can be read or written by others (%v): chmod 600 %s, and take a new key if others may have read it", ErrKey, path, mode.Perm(), path)
	}
	r, err := readRing(f)
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return r, nil
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
			return nil, fmt.Errorf("%w: line %d has %d words, need a key, or an id and a key", ErrKey, n, len(fields))
		}
		k, err := ParseKey(fields[len(fields)-1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case len(fields) == 1 && r.All != nil:
			return nil, fmt.Errorf("%w: line %d has a second key for all peers: begin it with the id of the peer that it is for", ErrKey, n)
		case len(fields) == 1:
			r.All = &k
		default:
			id, err := strconv.ParseUint(fields[0], 10, 16)
			switch {
			case err != nil || id == 0:
				return nil, fmt.Errorf("%w: line %d begins with none of the ids of peers, 1 to 65535", ErrKey, n) // it may be a key
			case r.Own[uint16(id)] != nil:
				return nil, fmt.Errorf("%w: line %d has a second key for peer %d", ErrKey, n, id)
			}
			r.Own[uint16(id)] = &k
		}
	}
	switch err := lines.Err(); {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	case r.All == nil && len(r.Own) == 0:
		return nil, fmt.Errorf("%w: there is none", ErrKey)
	}
	return r, nil
}
