package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dgrdma/dgrdma/dgrdma"
	"github.com/dgrdma/dgrdma/link"
)

// elsewhere adds to an error what a user may look at who dialed a server of something else: the
// command is bench or ping, whose service has its name where it is not over links.
func elsewhere(err error, command string, linked bool) error {
	var other *dgrdma.ServiceError
	switch {
	case errors.As(err, &other):
		there := link.ServiceName
		if linked {
			there = command
		}
		if slices.Contains(other.Have, there) {
			return fmt.Errorf("%w Both sides of dgrdmacat %s need --link, or neither", err, command)
		}
	case isNoPort(err):
		return fmt.Errorf("%w; does dgrdmacat %s --link --serve run there, and no other command?", err, command)
	}
	return err
}

// isNoPort reports whether a host of links was dialed that does not listen on the port, which is
// in the words of its refusal alone.
func isNoPort(err error) bool {
	return errors.Is(err, link.ErrRefused) && strings.Contains(err.Error(), ": no port ")
}
