KernelScheduler { name: "adios", label: "ADIOS", module: Some("adios"), counterpart: "linux-mq-deadline" }
