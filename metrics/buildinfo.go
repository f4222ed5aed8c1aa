package metrics

import (
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// module is the module whose version is shown.
const module = "github.com/dgrdma/dgrdma"

var buildInfo = func() prometheus.Metric {
	version, revision, goVersion := Build()
	return prometheus.MustNewConstMetric(
		prometheus.NewDesc("dgrdma_build_info", "Always 1; the labels have the version of this module, and the revision and Go version of the program.", []string{"version", "revision", "goversion"}, nil),
		prometheus.GaugeValue, 1, version, revision, goVersion)
}()

// Build returns the version of this module in the program that runs, the revision of the
// program, and the version of Go it was built with: the labels of dgrdma_build_info. What
// was not recorded is "unknown".
func Build() (version, revision, goVersion string) {
	info, _ := debug.ReadBuildInfo()
	return buildOf(info)
}

// buildOf finds the version of this module in a program. The revision is the program's, so
// it counts only in a program of this module.
func buildOf(info *debug.BuildInfo) (version, revision, goVersion string) {
	if info == nil {
		return "unknown", "unknown", "unknown"
	}
	version, revision, goVersion = "unknown", "unknown", info.GoVersion
	if info.Main.Path == module {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	for _, d := range info.Deps {
		if d.Path == module {
			version = d.Version
		}
	}
	return version, revision, goVersion
}
