package main

import (
	"errors"
	"fmt"
	"slices"

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
	case errors.Is(err, link.ErrNoPort):
		return fmt.Errorf("%w; does dgrdmacat %s --link --serve run there, and no other command?", err, command)
	}
	return err
}
