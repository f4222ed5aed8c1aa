package nfs3_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/dgrdma/dgrdma/nfs3"
)

// TestStatusOf checks which status stands for an error, and which errors of package io/fs a status is.
func TestStatusOf(t *testing.T) {
	for err, want := range map[error]nfs3.Status{
		nil:                                  nfs3.OK,
		nfs3.ErrStale:                        nfs3.ErrStale,
		fmt.Errorf("x: %w", nfs3.ErrNotSync): nfs3.ErrNotSync,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}: nfs3.ErrNoEnt,
		syscall.ENOTEMPTY:     nfs3.ErrNotEmpty,
		syscall.EBADMSG:       nfs3.ErrIO,
		fs.ErrExist:           nfs3.ErrExist,
		fs.ErrPermission:      nfs3.ErrAcces,
		errors.ErrUnsupported: nfs3.ErrNotSupp,
		errors.New("other"):   nfs3.ErrIO,
	} {
		if got := nfs3.StatusOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
	for _, c := range []struct {
		status nfs3.Status
		is     error
	}{{nfs3.ErrNoEnt, fs.ErrNotExist}, {nfs3.ErrExist, fs.ErrExist}, {nfs3.ErrAcces, fs.ErrPermission}, {nfs3.ErrPerm, fs.ErrPermission}, {nfs3.ErrNotSupp, errors.ErrUnsupported}} {
		if !errors.Is(fmt.Errorf("x: %w", c.status), c.is) || errors.Is(nfs3.ErrIO, c.is) {
			t.Errorf("%v is not %v", c.status, c.is)
		}
	}
	if s := nfs3.ErrNoEnt; s.String() != "NFS3ERR_NOENT" || s.Error() != "no such file or directory" || nfs3.Status(77).String() != "NFS3ERR_77" {
		t.Errorf("%s, %v, %s", s, s.Error(), nfs3.Status(77))
	}
}
