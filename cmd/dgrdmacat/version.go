package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/dgrdma/dgrdma/metrics"
)

// builtFrom is in the objects that --json prints of what was measured or moved: which build
// it was.
type builtFrom struct {
	Version string `json:"version"`
}

func thisBuild() builtFrom {
	version, _, _ := metrics.Build()
	return builtFrom{version}
}

func (b *builtFrom) nameBuild() { *b = thisBuild() }

var versionCommand = command{
	name: "version", summary: "print which version this is",
	about: `Prints the version of the module, the revision it was built from, and the version
of Go: what --metrics says in dgrdma_build_info. What was not recorded when it was
built is unknown: "go build" in a clone records all of it, "go run" no revision, as
nothing does with -buildvcs=false.`,
	flags: func(*flag.FlagSet) action {
		return func(_ context.Context, std *stdio, _ []string) error {
			version, revision, goVersion := metrics.Build()
			_, err := fmt.Fprintf(std.out, "dgrdmacat %s, revision %s, %s\n", version, revision, goVersion)
			return err
		}
	},
}
