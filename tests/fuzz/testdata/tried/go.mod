module tried

go 1.26.0
