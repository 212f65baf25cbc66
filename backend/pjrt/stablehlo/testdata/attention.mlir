module @attention {
  func.func public @main(%arg0: tensor<1x5x2x4xf32>, %arg1: tensor<1x7x2x4xf32>, %arg2: tensor<1x7x2x4xf32>) -> tensor<1x5x2x4xf32> {
    %0 = stablehlo.reshape %arg0 : (tensor<1x5x2x4xf32>) -> tensor<1x5x2x1x4xf32>
    %1 = stablehlo.dot_general %0, %arg1, batching_dims = [0, 2] x [0, 2], contracting_dims = [4] x [3], precision = [HIGHEST, HIGHEST] : (tensor<1x5x2x1x4xf32>, tensor<1x7x2x4xf32>) -> tensor<1x2x5x1x7xf32>
    %2 = stablehlo.transpose %1, dims = [0, 1, 3, 2, 4] : (tensor<1x2x5x1x7xf32>) -> tensor<1x2x1x5x7xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x2x1x5x7xf32>) -> tensor<1x2x5x7xf32>
    %4 = stablehlo.constant dense<0.5> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<1x2x5x7xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<1x2x5x7xf32>
    %7 = stablehlo.constant dense<0xFF800000> : tensor<f32> // -Inf
    %8 = stablehlo.reduce(%6 init: %7) applies stablehlo.maximum across dimensions = [3] : (tensor<1x2x5x7xf32>, tensor<f32>) -> tensor<1x2x5xf32>
    %9 = stablehlo.reshape %8 : (tensor<1x2x5xf32>) -> tensor<1x2x5x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<1x2x5x1xf32>) -> tensor<1x2x5x7xf32>
    %11 = stablehlo.subtract %6, %10 : tensor<1x2x5x7xf32>
    %12 = stablehlo.exponential %11 : tensor<1x2x5x7xf32>
    %13 = stablehlo.constant dense<0.0> : tensor<f32>
    %14 = stablehlo.reduce(%12 init: %13) applies stablehlo.add across dimensions = [3] : (tensor<1x2x5x7xf32>, tensor<f32>) -> tensor<1x2x5xf32>
    %15 = stablehlo.reshape %14 : (tensor<1x2x5xf32>) -> tensor<1x2x5x1xf32>
    %16 = stablehlo.broadcast_in_dim %15, dims = [0, 1, 2, 3] : (tensor<1x2x5x1xf32>) -> tensor<1x2x5x7xf32>
    %17 = stablehlo.divide %12, %16 : tensor<1x2x5x7xf32>
    %18 = stablehlo.reshape %17 : (tensor<1x2x5x7xf32>) -> tensor<1x2x1x5x7xf32>
    %19 = stablehlo.dot_general %18, %arg2, batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1], precision = [HIGHEST, HIGHEST] : (tensor<1x2x1x5x7xf32>, tensor<1x7x2x4xf32>) -> tensor<1x2x1x5x4xf32>
    %20 = stablehlo.transpose %19, dims = [0, 3, 1, 2, 4] : (tensor<1x2x1x5x4xf32>) -> tensor<1x5x2x1x4xf32>
    %21 = stablehlo.reshape %20 : (tensor<1x5x2x1x4xf32>) -> tensor<1x5x2x4xf32>
    return %21 : tensor<1x5x2x4xf32>
  }
}
