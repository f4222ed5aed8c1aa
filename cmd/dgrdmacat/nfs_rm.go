package main

import (
	"context"
	"flag"
	"fmt"
)

var nfsRmCommand = command{
	name: "nfs rm", summary: "remove files of a server of NFS", args: "ADDRESS...",
	about: `Removes files of a server of NFS version 3, as rm does: also symbolic links, and what nfs put has
left there, but no directories.

  dgrdmacat nfs rm rdma:10.0.0.2/export/file

` + nfsAbout,
	flags: func(fs *flag.FlagSet) action {
		o := new(nfsFlags)
		o.register(fs)
		return func(ctx context.Context, _ *stdio, args []string) error {
			all, err := o.addresses(args)
			if err != nil {
				return err
			}
			for _, at := range all {
				if err := o.rm(ctx, at); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

// rm removes what an address is of.
func (f *nfsFlags) rm(ctx context.Context, at nfsAddress) error {
	from, err := f.mountNFS(ctx, at, 0)
	if err != nil {
		return err
	}
	defer from.close()
	info, err := from.Lstat(from.name)
	switch {
	case err != nil:
		return from.explain(ctx, at.String(), err)
	case info.IsDir():
		return fmt.Errorf("%v is a directory, and nfs rm removes files", at)
	case at.slash:
		return at.noDirectory()
	}
	return from.explain(ctx, at.String(), from.Remove(from.name))
}
